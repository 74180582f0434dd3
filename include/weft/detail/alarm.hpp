// Tasks that a timer starts.
#pragma once

#include <memory>
#include <weft/deadline.hpp>
#include <weft/detail/task.hpp>

namespace weft::detail {

// A task, and the fiber that will run it at a given time; until then it costs two small records and
// no stack. Its handle and its fiber share it. Fibers and plain threads may call its functions,
// which never park.
class Alarm {
 public:
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Returns true if the task will not run: it is then destroyed soon, in its fiber.
  [[nodiscard]] virtual bool cancel() noexcept = 0;
  // Called at the end of the handle; the task is not affected.
  virtual void release() noexcept = 0;

 protected:
  Alarm() noexcept = default;
  virtual ~Alarm() = default;
};

// Never parks. Throws as spawn().
[[nodiscard]] Alarm* set_alarm(Deadline deadline, Task&& task);

struct ReleaseAlarm {
  void operator()(Alarm* alarm) const noexcept { alarm->release(); }
};
using AlarmHandle = std::unique_ptr<Alarm, ReleaseAlarm>;

}  // namespace weft::detail
