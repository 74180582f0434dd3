// The options of a group of tasks.
// Context: plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/spawn_options.hpp>
#include <weft/unlimited.hpp>

namespace weft {

// Selects what happens to the other tasks of a group when a task throws.
enum class OnError : std::uint8_t {
  cancel_rest,  // The group's context is cancelled; the first exception is kept.
  run_rest,     // The other tasks continue. The first exception is kept; others, if memory allows.
};

struct TaskGroupOptions {
  // The maximum number of tasks that run at once. At least 1.
  std::size_t max_running = kUnlimited;
  OnError on_error = OnError::cancel_rest;
  // The deadline of the group's context.
  Deadline deadline = Deadline::never();
  // The options of the tasks' fibers in a group without a pool. The text of `fibers.name` must
  // outlive the group.
  SpawnOptions fibers = {};
};

}  // namespace weft
