// Lists all schedulers of the process, and determines the one to which plain threads spawn.
#pragma once

#include <cstdint>
#include <functional>
#include <weft/deadline.hpp>

namespace weft::scheduler {

class Scheduler;

// The constructor calls it when the scheduler is complete. Throws std::bad_alloc,
// std::system_error.
void enter_registry(Scheduler& scheduler);
// From now on no thread chooses it, and no thread that has chosen it still uses it.
void stop_choosing(Scheduler& scheduler) noexcept;
// The destructor calls it. Includes stop_choosing().
void leave_registry(Scheduler& scheduler) noexcept;

// Calls visit for each scheduler; none is destroyed meanwhile. Returns false, without a call, if it
// could not lock the registry before `patience` ended. Any thread may call it.
[[nodiscard]] bool visit_registry(Deadline patience, const std::function<void(Scheduler&)>& visit);

// Sets the scheduler to which the calling plain thread spawns; nullptr: the oldest. Returns the
// previous one.
Scheduler* bind_this_thread(Scheduler* scheduler) noexcept;

// The number of forks between the first process and this one. A scheduler that was made before the
// last of them has lost its threads.
[[nodiscard]] std::uint32_t forks() noexcept;

// The scheduler to which the calling plain thread spawns, as long as this object lives: the one
// that the thread is bound to, otherwise the oldest of the process, otherwise nullptr. The
// scheduler is not destroyed meanwhile, so the object must be short-lived.
class Choice {
 public:
  Choice() noexcept;
  ~Choice();
  Choice(const Choice&) = delete;
  Choice& operator=(const Choice&) = delete;
  [[nodiscard]] Scheduler* get() const noexcept { return scheduler_; }

 private:
  std::uint32_t side_;
  Scheduler* scheduler_;
};

}  // namespace weft::scheduler
