// Handles forks, after which the child process has only the thread that called fork().
#pragma once

#include <cstdint>
#include <weft/detail/thread_mutex.hpp>

namespace weft::detail {

// Returns the number of forks between the first process and this process.
[[nodiscard]] std::uint32_t forks() noexcept;

// Holds functions that each fork() calls: first `before`, and after the fork `in_parent` in the
// parent and `in_child` in the child. Each object is a constant with static storage, so that all
// objects exist before main() begins. If an object were constructed when its library is first used,
// another thread could fork during the construction.
class ForkHandlers {
 public:
  // A thread that holds an outer lock may take an inner lock, so `before` takes outer locks first.
  enum class Locks : std::uint8_t { outer, inner };
  using Function = void (*)();

  // Throws std::system_error.
  ForkHandlers(Locks locks, Function before, Function in_parent, Function in_child);
  ForkHandlers(const ForkHandlers&) = delete;
  ForkHandlers& operator=(const ForkHandlers&) = delete;

 private:
  static void run_all(const Function ForkHandlers::*function) noexcept;

  static ForkHandlers* first_;
  const Function before_;
  const Function in_parent_;
  const Function in_child_;
  ForkHandlers* next_ = nullptr;
};

// Holds a lock during each fork, so that the child finds it unlocked.
template <ThreadMutex& kMutex, ForkHandlers::Locks kLocks = ForkHandlers::Locks::inner>
class HeldOverForks : public ForkHandlers {
 public:
  // WEFT_NOT_ANALYZED, because one function releases the lock that another function takes.
  HeldOverForks()
      : ForkHandlers(
            kLocks, []() WEFT_NOT_ANALYZED { kMutex.lock(); },
            []() WEFT_NOT_ANALYZED { kMutex.unlock(); },
            []() WEFT_NOT_ANALYZED { kMutex.unlock(); }) {}
};

}  // namespace weft::detail
