// Starts a task at a given time.
#pragma once

#include <memory>
#include <weft/deadline.hpp>
#include <weft/detail/task.hpp>

namespace weft::detail {

// Runs a task at a given time, in a fiber of its own. Until that time, an alarm occupies two small
// records, but no stack. The handle and the fiber share the alarm. Fibers and plain threads may
// call its functions, which never park.
class Alarm {
 public:
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Cancels the task, which the alarm's fiber then destroys. Returns false if it is too late.
  [[nodiscard]] virtual bool cancel() noexcept = 0;
  // The handle's destructor calls release(), which does not affect the task.
  virtual void release() noexcept = 0;

 protected:
  Alarm() noexcept = default;
  virtual ~Alarm() = default;
};

// Makes an alarm that runs `task` at `deadline`. Never parks. Throws what spawn() throws.
[[nodiscard]] Alarm* set_alarm(Deadline deadline, Task&& task);

struct ReleaseAlarm {
  void operator()(Alarm* alarm) const noexcept { alarm->release(); }
};
using AlarmHandle = std::unique_ptr<Alarm, ReleaseAlarm>;

}  // namespace weft::detail
