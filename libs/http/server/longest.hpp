// Finds the longest-running requests of a server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <weft/net/address.hpp>

#include "libs/http/server/progress.hpp"
#include "net/connections.hpp"

namespace weft::http {

class ServerConnection;

// Orders requests by the arrival of their first bytes, or by the beginning of the current wait for
// the client.
enum class LongestBy : std::uint8_t { age, wait };

// A request that the server is reading or answering.
struct Busy {
  const ServerConnection* connection = nullptr;  // Set only during Connections::visit().
  std::int64_t since = 0;                        // The time that determines the order of requests.
  std::uint64_t fiber = 0;
  net::Address peer;
  ProgressView progress;
};

// Fills `room` with the requests that are oldest or have waited longest, in descending order.
// Returns how many requests it stored. The cost is linear in the number of connections.
[[nodiscard]] std::size_t find_longest(const net::Connections& connections, std::span<Busy> room,
                                       LongestBy by) noexcept;

}  // namespace weft::http
