// The errors of the library, as std::error_code values.
// Context: plain value.
#pragma once

#include <system_error>

namespace weft {

enum class Errc {
  no_runtime = 1,  // A plain thread called a function that needs a Runtime, but none exists.
  // A spawn was refused: RuntimeOptions::max_fibers or memory_goal was reached, or no stack was
  // available and refuse_without_stacks was set.
  too_many_fibers,
  invalid_stack_size,  // SpawnOptions::stack_size > 16 MiB; equals std::errc::invalid_argument.
  closed,              // The channel, pool, socket, file, watch or other object is closed.
  full,                // There is no room, and the call must not wait for it.
  timed_out,           // The deadline ended the call; equals std::errc::timed_out.
  cancelled,           // A stop request or a dropped task; equals std::errc::operation_canceled.
  empty_task,          // The callable to run is empty; equals std::errc::invalid_argument.
  too_many_waiting,    // The pool already has max_blocked waiting submitters.
  end_of_stream,       // The peer closed its side of the connection, or the file or body ended.
  too_heavy,           // The task's weight is above the capacity of its pool.
  already_watched,     // The runtime already watches the descriptor.
  signal_in_use,       // Another SignalSet or wait_signal() uses the signal.
};

// Returns the category of Errc, named "weft". The object exists until the process ends.
[[nodiscard]] const std::error_category& error_category() noexcept;

// Converts an Errc, for comparisons such as `result.error == Errc::closed`.
[[nodiscard]] inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

}  // namespace weft

template <>
struct std::is_error_code_enum<weft::Errc> : std::true_type {};
