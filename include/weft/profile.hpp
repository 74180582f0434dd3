// Takes profiles of a running program, for flame graphs and pprof.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <weft/result.hpp>

// Each call records samples for Options::duration, and returns them grouped by stack. A stack
// begins with the fiber's name and its callable, if dumps show them. The live page offers the same
// recordings (live_page.hpp).
//
//   const auto [text, error] = weft::profile::processor({.duration = 10s});
namespace weft::profile {

enum class Format : std::uint8_t {
  // One line for each stack, the outermost call first: `GET /users;handler;...;parse 120000000`.
  // weft-symbolize adds the names of functions. flamegraph.pl and speedscope read this format.
  folded,
  // The uncompressed profile.proto, which `go tool pprof program file` and speedscope read.
  pprof,
};

struct Options {
  std::chrono::nanoseconds duration = std::chrono::seconds(5);
  Format format = Format::folded;
};

// Records where workers use processor time. Takes a sample for each 10 ms of processor time that a
// worker's thread uses, with the innermost 24 calls of its fiber. Folded stacks count nanoseconds
// of processor time. Samples of a worker that is looking for work appear under `[worker]`. The
// threads of blocking() and the program's own threads are not sampled. The thread receives SIGPROF
// for each sample. The signal handler stays installed, takes no lock, and wakes no waiting fiber.
// Context: fibers and plain threads; parks for the duration, as blocking() does.
// Errors: std::errc::operation_in_progress during another such recording; device_or_resource_busy
// if the program handles SIGPROF itself; operation_not_supported under a sanitizer and in a
// simulation; Errc::cancelled or timed_out if the caller's context ends before the recording.
// Throws: std::bad_alloc, and std::system_error if the system creates no thread or timer.
[[nodiscard]] Result<std::string> processor(const Options& options = {});

// Records how long fibers wait for other fibers, and in which calls: for mutexes, semaphores,
// channels, selects without descriptors, a Once, and room in a pool. A stack ends with the reason,
// such as `[mutex]`. Folded stacks count nanoseconds from when the fiber parks until it runs again.
// An unfinished wait counts until the recording ends. Waits that began before the recording are not
// sampled. If there are many waits, a worker samples one wait in n, up to 1024, and counts it n
// times. Waits of plain threads are not sampled. contention() and blocked() cannot overlap.
// Context, Errors, Throws: the same as for processor(), but never device_or_resource_busy.
[[nodiscard]] Result<std::string> contention(const Options& options = {});

// Works like contention(), but also records sleeps and waits for timers, descriptors, joins, events
// and blocking(). It omits only idle pool workers and fibers that wait for a stack.
// Context, Errors, Throws: the same as for contention().
[[nodiscard]] Result<std::string> blocked(const Options& options = {});

}  // namespace weft::profile
