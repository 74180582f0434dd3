// Limits of a client's requests, in bytes and time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <weft/deadline.hpp>

namespace weft::http {

// kNever lifts a time. A request beyond a size is answered with the status named here, and its
// connection is closed.
struct Limits {
  // The request line and all headers; 431. Trailers may have the same size again.
  std::size_t head_bytes = 16 * 1024;
  // The target of a request; 414.
  std::size_t target_bytes = 8 * 1024;
  // Headers of a request; 431. At most kMaxHeaders.
  std::size_t headers = 100;
  static constexpr std::size_t kMaxHeaders = 128;
  // A body; 413.
  std::uint64_t body_bytes = 1024 * 1024;

  // The time from a request's first byte to the end of its head; 408.
  std::chrono::nanoseconds head = std::chrono::seconds(10);
  // The longest wait for bytes of a body; 408. It limits the lack of progress: see least_rate.
  std::chrono::nanoseconds body = std::chrono::seconds(60);
  // The longest wait for a client that takes no bytes of its answer. It also limits the lack of
  // progress.
  std::chrono::nanoseconds write = std::chrono::seconds(30);
  // Bytes per second. `body` and `write` are a budget for waiting on a client: waits consume it,
  // and each byte returns 1/least_rate seconds. So only a client that is slower than this rate is
  // disconnected, however long a transfer takes. 0: one byte restores the whole budget.
  std::uint64_t least_rate = 1024;
  // A connection without requests is closed after this time, at the latest after twice this time.
  std::chrono::nanoseconds idle = std::chrono::seconds(60);
  // The deadline of a request's Context, from the end of its head.
  std::chrono::nanoseconds request = weft::kNever;
};

// Limits of one request. Each limit that is set replaces the limit of the server.
struct RequestLimits {
  // The size of a body; at most Limits::body_bytes, which the server checks before the handler.
  std::optional<std::uint64_t> body_bytes = {};
  std::optional<std::chrono::nanoseconds> body = {};
  std::optional<std::chrono::nanoseconds> write = {};
  std::optional<std::chrono::nanoseconds> request = {};  // Counted from set_limits().
};

}  // namespace weft::http
