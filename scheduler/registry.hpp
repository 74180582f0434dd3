// Lists all schedulers of the process, and determines the scheduler in which plain threads spawn.
#pragma once

#include <cstdint>
#include <functional>
#include <weft/deadline.hpp>

namespace weft::scheduler {

class Scheduler;

// The scheduler's constructor calls this function once the scheduler is complete. Throws
// std::bad_alloc, std::system_error.
void enter_registry(Scheduler& scheduler);
// After this function returns, no thread can choose the scheduler, and no thread that chose it
// earlier still uses it.
void stop_choosing(Scheduler& scheduler) noexcept;
// The scheduler's destructor calls this function. The function begins with a call of
// stop_choosing().
void leave_registry(Scheduler& scheduler) noexcept;

// Calls `visit` for each scheduler; no scheduler is destroyed meanwhile. Returns false, without
// calling `visit`, if it cannot lock the registry by the deadline `patience`. Any thread may call
// it.
[[nodiscard]] bool visit_registry(Deadline patience, const std::function<void(Scheduler&)>& visit);

// Sets the scheduler to which the calling plain thread spawns; nullptr stands for the oldest.
// Returns the previous setting.
Scheduler* bind_this_thread(Scheduler* scheduler) noexcept;

// Holds the scheduler to which the calling plain thread spawns: the one to which the thread is
// bound, otherwise the oldest one that can be chosen, or nullptr. While this object exists, the
// scheduler cannot be destroyed, so the object must be short-lived.
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
