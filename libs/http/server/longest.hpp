// The longest requests of a server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <weft/net/address.hpp>

#include "libs/http/server/progress.hpp"
#include "net/connections.hpp"

namespace weft::http {

class Connection;

// How requests are ordered: by their first bytes, or by the begin of a wait for the client.
enum class LongestBy : std::uint8_t { age, wait };

// A request that is being read or answered.
struct Busy {
  const Connection* connection = nullptr;  // Only while the connections are visited.
  std::int64_t since = 0;                  // The moment by which it is ordered.
  std::uint64_t fiber = 0;
  net::Address peer;
  ProgressView progress;
};

// Fills `room` with the requests that have gone on or waited for longest, the longest first.
// Returns how many there are in it. Takes time in proportion to the number of connections.
[[nodiscard]] std::size_t find_longest(const net::Connections& connections, std::span<Busy> room,
                                       LongestBy by) noexcept;

}  // namespace weft::http
