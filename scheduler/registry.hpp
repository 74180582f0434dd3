// All schedulers of the process, and the one to which plain threads spawn.
#pragma once

#include <cstdint>
#include <functional>
#include <weft/deadline.hpp>

namespace weft::scheduler {

class Scheduler;

// The constructor calls it; the scheduler is complete. Throws std::bad_alloc, std::system_error.
void enter_registry(Scheduler& scheduler);
// No thread chooses it from now on, and none that has chosen it is still at it.
void stop_choosing(Scheduler& scheduler) noexcept;
// The destructor calls it. Does stop_choosing() too.
void leave_registry(Scheduler& scheduler) noexcept;

// Calls visit for each scheduler; none is destroyed meanwhile. Returns false, without a call, if it
// did not get the lock before `patience` ended. Any thread may call it.
[[nodiscard]] bool visit_registry(Deadline patience, const std::function<void(Scheduler&)>& visit);

// Sets which scheduler the calling plain thread spawns to; nullptr: the oldest. Returns the former.
Scheduler* bind_this_thread(Scheduler* scheduler) noexcept;

// How many forks there were between the first process and this one. A scheduler that was made
// before the last of them has lost its threads.
[[nodiscard]] std::uint32_t forks() noexcept;

// The scheduler to which the calling plain thread spawns, as long as this lives: the one that the
// thread is bound to, else the oldest of the process, else nullptr. It is not destroyed meanwhile;
// so keep it for a moment only.
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
