// Limits of a client's requests, in bytes and time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <weft/deadline.hpp>

namespace weft::http {

// kNever lifts a time. A request beyond a size is answered with the status named here, and its
// connection closed.
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
  // The time from the first wait for a body to its end; 408.
  std::chrono::nanoseconds body = std::chrono::seconds(60);
  // The time for the kernel to take one write, before a client counts as too slow.
  std::chrono::nanoseconds write = std::chrono::seconds(30);
  // A connection without requests is closed after this time, at most twice as much.
  std::chrono::nanoseconds idle = std::chrono::seconds(60);
  // The deadline of a request's Context, from the end of its head.
  std::chrono::nanoseconds request = weft::kNever;
};

}  // namespace weft::http
