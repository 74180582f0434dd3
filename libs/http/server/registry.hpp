// All connections of a server.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <system_error>
#include <weft/detail/spin_lock.hpp>
#include <weft/net/address.hpp>

#include "libs/http/server/progress.hpp"

namespace weft::http {

class Connection;

// The moment that is `by` later; the last one that there can be, where there is none.
[[nodiscard]] constexpr std::int64_t later(std::int64_t moment,
                                           std::chrono::nanoseconds by) noexcept {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  return by.count() > kLast - moment ? kLast : moment + by.count();
}

// One reading of a registry, of one moment.
struct Counts {
  std::uint64_t added = 0;  // Ever.
  std::uint64_t present = 0;
};

// How requests are ordered: by their first bytes, or by the begin of a wait for the client.
enum class LongestBy : std::uint8_t { age, wait };

// A request that is being read or answered, as a registry shows it.
struct Busy {
  const Connection* connection = nullptr;  // Valid under the registry's lock.
  std::int64_t since = 0;                  // The moment by which it is ordered.
  std::uint64_t fiber = 0;
  net::Address peer;
  ProgressView progress;
};

// A list in the order in which the connections are to be looked at. No connection is moved when it
// is used: the next look finds that it was, and puts it back at the end.
class Registry {
 public:
  void add(Connection& connection, std::chrono::nanoseconds idle) noexcept;
  void remove(Connection& connection) noexcept;

  // Makes connections whose `idle` time may be over look for themselves. Returns when the next one
  // is due, by CLOCK_MONOTONIC.
  [[nodiscard]] std::int64_t poke_idle(std::chrono::nanoseconds idle) noexcept;
  // Makes all look for bytes once, and notice that the server stops.
  void poke_all() noexcept;
  // Closes all streams, except that of `spared` (may be null); the fibers that serve them, or will,
  // end them.
  void close_all(const Connection* spared) noexcept;
  // The connection whose handler, talk or log this fiber is in; null if there is none.
  [[nodiscard]] Connection* find_caller(std::uint64_t fiber) const noexcept;

  // Fills `room` with the requests that have gone on or waited for longest, the longest first.
  // Returns how many there are in it. Takes time in proportion to the number of connections.
  [[nodiscard]] std::size_t find_longest(std::span<Busy> room, LongestBy by) const noexcept;

  [[nodiscard]] Counts counts() const noexcept;

 private:
  template <class Act>
  void for_each_stream(const Connection* spared, Act act) noexcept;
  void unlink(Connection& connection) noexcept WEFT_REQUIRES(lock_);
  void append(Connection& connection) noexcept WEFT_REQUIRES(lock_);

  mutable detail::SpinLock lock_;
  Connection* first_ WEFT_GUARDED_BY(lock_) = nullptr;
  Connection* last_ WEFT_GUARDED_BY(lock_) = nullptr;
  std::uint64_t added_ WEFT_GUARDED_BY(lock_) = 0;
  std::uint64_t removed_ WEFT_GUARDED_BY(lock_) = 0;
  std::uint32_t round_ WEFT_GUARDED_BY(lock_) = 0;
};

}  // namespace weft::http
