// Tasks that a timer starts.
#pragma once

#include <memory>
#include <weft/deadline.hpp>
#include <weft/detail/task.hpp>

namespace weft::detail {

// A task and the fiber that will run the task at a given time. Until that time, an alarm uses two
// small records and no stack. The handle and the fiber share the alarm. Fibers and plain threads
// may call its functions, which never park.
class Alarm {
 public:
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Returns true if the task will not run; its fiber then soon destroys the task.
  [[nodiscard]] virtual bool cancel() noexcept = 0;
  // The destructor of the handle calls it; the task is not affected.
  virtual void release() noexcept = 0;

 protected:
  Alarm() noexcept = default;
  virtual ~Alarm() = default;
};

// Never parks. Throws what spawn() throws.
[[nodiscard]] Alarm* set_alarm(Deadline deadline, Task&& task);

struct ReleaseAlarm {
  void operator()(Alarm* alarm) const noexcept { alarm->release(); }
};
using AlarmHandle = std::unique_ptr<Alarm, ReleaseAlarm>;

}  // namespace weft::detail
