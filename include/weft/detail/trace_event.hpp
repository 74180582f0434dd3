// The events of a trace, for all that have something to tell it.
#pragma once

#include <cstdint>
#include <string_view>
#include <weft/detail/atomic.hpp>

namespace weft::detail {

enum class TraceKind : std::uint8_t {
  spawn,        // fiber, site, type
  ready,        // fiber, its id or 0: it has been woken, or gave way
  run,          // fiber, its id: it goes on
  leave,        // fiber, its id; what it waits for: it is parked, or gives way
  end,          // fiber, its id
  inlined,      // fiber, its id; what it waits for: one runs on its stack
  name,         // fiber's id; the name
  idle,         // The worker has no fiber.
  steal,        // the victim's index
  sleep,        //
  awake,        //
  poll,         // how many it woke
  pool_submit,  // the pool's name, for all of these
  pool_start,
  pool_end,
  pool_refuse,
};

// Whether a trace is being recorded. Relaxed: a hint; each worker sees it when it looks around.
extern Atomic<bool> tracing;
[[nodiscard, gnu::always_inline]] inline bool is_tracing() noexcept {
  return tracing.load(relaxed);
}

// Records an event of a pool, or a fiber's name, with the first characters of `text`. Requires
// is_tracing(). Call it from fibers and plain threads. Never parks.
[[gnu::cold]] void trace_text(TraceKind kind, std::string_view text) noexcept;

}  // namespace weft::detail
