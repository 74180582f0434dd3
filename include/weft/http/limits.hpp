// Defines limits for a client's requests, in bytes and in time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <weft/deadline.hpp>

namespace weft::http {

// kNever disables a time limit. If a request exceeds a limit for which a status is given, the
// server sends this status, unless the handler has responded, and closes the connection.
struct Limits {
  // The largest size of the request line and all headers; status 431. Trailers have the same limit.
  std::size_t head_bytes = 16 * 1024;
  // The largest size of a request's target; status 414.
  std::size_t target_bytes = 8 * 1024;
  // The largest number of headers, and of trailers; status 431. At most kMaxHeaders.
  std::size_t headers = 100;
  static constexpr std::size_t kMaxHeaders = 128;
  // The largest size of a body; status 413.
  std::uint64_t body_bytes = 1024 * 1024;

  // The longest time from a request's first byte to the end of its head (status 408), and the
  // longest time for a handshake of ServerOptions::secure.
  std::chrono::nanoseconds head = std::chrono::seconds(10);
  // The longest wait for bytes of a body; status 408. Only time without progress counts.
  std::chrono::nanoseconds body = std::chrono::seconds(60);
  // The longest wait for a client that reads no bytes of its response. Only time without progress
  // counts.
  std::chrono::nanoseconds write = std::chrono::seconds(30);
  // In bytes per second. `body` and `write` are time budgets: waits for the client use them up, and
  // each byte restores 1/least_rate seconds. A client that is never slower than this rate stays
  // connected, however long a transfer takes. If the rate is 0, any byte restores the full budget.
  std::uint64_t least_rate = 1024;
  // After this time without a request, the server closes a connection within a few milliseconds.
  std::chrono::nanoseconds idle = std::chrono::seconds(60);
  // The time limit of a request's Context, counted from the end of the request's head.
  std::chrono::nanoseconds request = weft::kNever;
};

// Limits one request. Each limit that is set replaces the server's limit.
struct RequestLimits {
  // The largest size of a body; it can only lower the server's limit, Limits::body_bytes.
  std::optional<std::uint64_t> body_bytes = {};
  std::optional<std::chrono::nanoseconds> body = {};
  std::optional<std::chrono::nanoseconds> write = {};
  std::optional<std::chrono::nanoseconds> request = {};  // Counted from the call to set_limits().
};

}  // namespace weft::http
