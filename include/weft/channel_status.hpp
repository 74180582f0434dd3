// The result of a send or a receive.
#pragma once

#include <cstdint>

namespace weft {

// The result of calls of a Channel or a Broadcast that may fail.
enum class ChannelStatus : std::uint8_t {
  ok,          // The value was sent or received.
  closed,      // Closed; when receiving, also drained.
  would_wait,  // Nothing could be done without parking (try_ forms).
  timed_out,   // The deadline passed first.
  stopped,     // A stop was requested first.
};

}  // namespace weft
