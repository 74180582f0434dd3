// The result of a send or a receive.
#pragma once

#include <cstdint>

namespace weft {

// The result of a send or a receive on a Channel or a Broadcast.
enum class ChannelStatus : std::uint8_t {
  ok,          // The value was sent or received.
  closed,      // The channel is closed and, for a receive, empty; or a Subscription disconnected.
  would_wait,  // The call would have to park; only calls named try_... return this.
  timed_out,   // The deadline passed before the call could complete.
  stopped,     // A stop was requested before the call could complete.
};

}  // namespace weft
