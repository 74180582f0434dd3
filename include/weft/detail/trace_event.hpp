// Declares the events of a trace, for all code that records events.
#pragma once

#include <cstdint>
#include <string_view>
#include <weft/detail/atomic.hpp>

namespace weft::detail {

enum class TraceKind : std::uint8_t {
  spawn,        // arguments: the fiber, its site and its type
  ready,        // arguments as for run, or spawn if woken from outside; the fiber woke or gave way
  run,          // arguments: the fiber and its id; the fiber begins to run
  leave,        // arguments: the fiber, its id and its wait reason; the fiber parks or gives way
  end,          // arguments: the fiber and its id
  inlined,      // arguments as for leave; the fiber runs another fiber on its stack
  name,         // the fiber's id, the name
  idle,         // The worker has no fiber.
  steal,        // the victim's index
  sleep,        //
  awake,        //
  poll,         // the number of fibers that the poll woke
  pool_submit,  // the pool's name, as in all pool events
  pool_start,
  pool_end,
  pool_refuse,
};

// True while a trace is recorded. Relaxed: the flag is a hint, so workers may see a change late.
extern Atomic<bool> tracing;
[[nodiscard, gnu::always_inline]] inline bool is_tracing() noexcept {
  return tracing.load(relaxed);
}

// Records a pool event or a fiber's name; keeps only the first characters of `text`. Requires
// is_tracing(). Fibers and plain threads may call it. Never parks.
[[gnu::cold]] void trace_text(TraceKind kind, std::string_view text) noexcept;

}  // namespace weft::detail
