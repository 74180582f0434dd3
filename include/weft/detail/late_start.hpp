// Starts a group's task after a delay.
#pragma once

#include <system_error>
#include <utility>
#include <weft/accepted.hpp>
#include <weft/deadline.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/this_fiber.hpp>

namespace weft::detail {

// Parks until `due`, then spawns the task in the group, unless the group's context ends first.
// Throws std::system_error if the group refuses the task, and forwards exceptions from the spawn.
template <class Group, class F>
void start_late(Group& group, Deadline due, F& task) {
  if (!this_fiber::sleep_until(due, group.context())) return;
  const Accepted accepted = group.spawn_until(group.context(), std::move(task));
  if (accepted || group.context().is_over()) return;
  WEFT_THROW(std::system_error(accepted.error, "weft::TaskGroup::spawn_after: refused"));
}

}  // namespace weft::detail
