// Lets a group run its tasks in a pool instead of in separate fibers.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <utility>
#include <weft/accepted.hpp>
#include <weft/detail/task.hpp>
#include <weft/until.hpp>

namespace weft {

class FiberPool;
struct SubmitOptions;

namespace detail {

// Specifies how long a submission waits for room in the pool: as on_full specifies, not at all, or
// until the submission's limit.
enum class Room : std::uint8_t { as_configured, now, awaited };

// Holds pointers to the FiberPool functions that groups, streams and loops call. Their headers
// therefore do not include pool.hpp, and a program without pools does not link its code.
class GroupPool {
 public:
  // `submit` does the same as FiberPool::submit(), try_submit() or submit_until(), depending on
  // `room`, and leaves a refused task unchanged. `capacity` and `stop_token` do the same as the
  // FiberPool functions with these names.
  struct Calls {
    Accepted (*submit)(FiberPool& pool, Room room, const Until& until, Task& task);
    // Does the same as `submit`, and forwards stop requests from the options and the pool to `own`,
    // the task's stop source, if any.
    Accepted (*submit_with)(FiberPool& pool, const SubmitOptions& options, std::stop_source own,
                            Room room, const Until& until, Task& task);
    std::size_t (*capacity)(const FiberPool& pool) noexcept;
    std::stop_token (*stop_token)(const FiberPool& pool) noexcept;
    // Calls `wait` and returns its result. If the caller is a task of the pool, other tasks can use
    // its slot during the wait.
    bool (*wait_without_slot)(FiberPool& pool, bool (*wait)(void* argument) noexcept,
                              void* argument) noexcept;
  };

  // Makes a GroupPool without a pool.
  GroupPool() noexcept = default;
  GroupPool(FiberPool& pool, const Calls& calls) noexcept : pool_(&pool), calls_(&calls) {}

  [[nodiscard]] explicit operator bool() const noexcept { return pool_ != nullptr; }
  // The next four functions require a pool.
  [[nodiscard]] Accepted submit(Room room, const Until& until, Task& task) const {
    return calls_->submit(*pool_, room, until, task);
  }
  [[nodiscard]] Accepted submit(const SubmitOptions& options, std::stop_source own, Room room,
                                const Until& until, Task& task) const {
    return calls_->submit_with(*pool_, options, std::move(own), room, until, task);
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return calls_->capacity(*pool_); }
  [[nodiscard]] std::stop_token stop_token() const noexcept { return calls_->stop_token(*pool_); }
  // Without a pool, this function only calls `wait`.
  template <std::invocable Wait>
  bool wait_without_slot(Wait wait) const noexcept {
    if (pool_ == nullptr) return wait();
    return calls_->wait_without_slot(
        *pool_, [](void* argument) noexcept -> bool { return (*static_cast<Wait*>(argument))(); },
        &wait);
  }

 private:
  FiberPool* pool_ = nullptr;
  const Calls* calls_ = nullptr;
};

// Returns the GroupPool for `pool`. The pool's source file defines this function.
[[nodiscard]] GroupPool group_pool(FiberPool& pool) noexcept;

}  // namespace detail
}  // namespace weft
