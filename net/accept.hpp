// Functions that accept connections.
#pragma once

#include <algorithm>
#include <chrono>
#include <system_error>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/until.hpp>

#include "io/poller.hpp"

namespace weft::net {

// Returns the next connection of a listener, whose handle the caller has entered. Parks. It skips
// connections that failed before they were accepted. It returns errors of the listener, and
// temporary errors.
Result<Socket> accept_once(io::IoHandle& listener, const Until& until) noexcept;
// Accepts from a listener that may be closed, and waits until temporary errors have passed. Reports
// a shortage after kRefusalsToReport retries. If a rule (EPERM, EOPNOTSUPP) still forbids the call
// after as many retries in a row, returns that error.
Result<Socket> accept_patiently(const Socket& listener, const Until& until) noexcept;

// Returns whether the error is temporary: the system lacks descriptors or memory, which other code
// may release, or it admits no connection for now.
[[nodiscard]] bool passes_by_itself(std::error_code error) noexcept;

// The refusal after this many pauses in a row is reported, after about a quarter of a second.
inline constexpr unsigned kRefusalsToReport = 8;
// Writes a line to stderr that names the error and its limit, unless the last line named the same
// error. Any thread may call it.
void report_refusals(std::error_code error) noexcept;

// Returns how long to wait before the next try: 1 ms, 2, 4, ... 1 s.
class Pauses {
 public:
  [[nodiscard]] std::chrono::milliseconds next() noexcept {
    const auto pause = next_;
    next_ = std::min(2 * next_, kLongest);
    ++count_;
    return pause;
  }
  void reset() noexcept { *this = {}; }
  // Returns the number of pauses since the last reset.
  [[nodiscard]] unsigned count() const noexcept { return count_; }

 private:
  static constexpr std::chrono::milliseconds kLongest{1000};

  std::chrono::milliseconds next_{1};
  unsigned count_ = 0;
};

// Holds a descriptor in reserve. If no other descriptor is free, the server releases this one, so
// that it can accept a connection and refuse it.
class ReserveDescriptor {
 public:
  ReserveDescriptor() noexcept { (void)take(); }
  ~ReserveDescriptor() { give(); }
  ReserveDescriptor(const ReserveDescriptor&) = delete;
  ReserveDescriptor& operator=(const ReserveDescriptor&) = delete;

  // Takes the descriptor, unless it is held. Returns false if the system has no free descriptor. A
  // program works without the reserve if /dev/null does not exist.
  [[nodiscard]] bool take() noexcept;
  // Returns the descriptor to the system. Returns false if it was not held.
  bool give() noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace weft::net
