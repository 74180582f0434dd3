// Tasks that a timer starts.
#pragma once

#include <memory>
#include <weft/deadline.hpp>
#include <weft/detail/task.hpp>

namespace weft::detail {

// A task, and the fiber that will run it at a given time; until then it costs two small records and
// no stack. Its handle and its fiber share it.
class Alarm;

// Fibers and plain threads may call it; it never parks. Throws as spawn().
[[nodiscard]] Alarm* set_alarm(Deadline deadline, Task&& task);
// Returns true if the task will not run: it is then destroyed soon, in its fiber. Never parks.
[[nodiscard]] bool cancel_alarm(Alarm& alarm) noexcept;
// Called at the end of the handle; the task is not affected.
void release_alarm(Alarm& alarm) noexcept;

struct ReleaseAlarm {
  void operator()(Alarm* alarm) const noexcept { release_alarm(*alarm); }
};
using AlarmHandle = std::unique_ptr<Alarm, ReleaseAlarm>;

}  // namespace weft::detail
