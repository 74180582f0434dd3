// The result of a send or a receive.
#pragma once

#include <cstdint>

namespace weft {

// The result of a send or a receive on a Channel or a Broadcast.
enum class ChannelStatus : std::uint8_t {
  ok,          // The value was sent or received.
  closed,      // The queue is closed and, for a receive, also drained.
  would_wait,  // The call would have to park (try_ forms only).
  timed_out,   // The deadline passed first.
  stopped,     // A stop was requested first.
};

}  // namespace weft
