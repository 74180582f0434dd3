// What a send or a receive has come to.
#pragma once

#include <cstdint>

namespace weft {

// The result of the calls of a Channel and of a Broadcast that may be without success.
enum class ChannelStatus : std::uint8_t {
  ok,          // The value was sent or received.
  closed,      // Closed; when receiving, also drained.
  would_wait,  // Nothing could be done without parking (try_ forms).
  timed_out,   // The deadline passed first.
  stopped,     // A stop was requested first.
};

}  // namespace weft
