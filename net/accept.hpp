// The parts of accepting connections.
#pragma once

#include <algorithm>
#include <chrono>
#include <system_error>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/until.hpp>

#include "io/poller.hpp"

namespace weft::net {

// Returns the next connection of a listener, whose handle the caller has entered. Parks. It passes
// over errors of the connection that was next; it returns errors of the listener, and errors that
// pass by themselves.
Result<Socket> accept_once(io::IoHandle& listener, const Until& until) noexcept;
// The same for a listener that may be closed; errors that pass by themselves are waited out. What a
// rule forbids (EPERM, EOPNOTSUPP) is returned after kRefusalsToReport tries, and a shortage is
// reported then.
Result<Socket> accept_patiently(const Socket& listener, const Until& until) noexcept;

// The system lacks descriptors or memory, and others may give some back; or it lets no connection
// in for now.
[[nodiscard]] bool passes_by_itself(std::error_code error) noexcept;

// The number of refusals in a row, in a quarter of a second, after which a shortage is reported.
inline constexpr unsigned kRefusalsToReport = 8;
// Writes a line to stderr that names the error and its limit, unless the last line named the same
// error. Any thread may call it.
void report_refusals(std::error_code error) noexcept;

// How long to wait before the next try: 1 ms, 2, 4, ... 1 s.
class Pauses {
 public:
  [[nodiscard]] std::chrono::milliseconds next() noexcept {
    const auto pause = next_;
    next_ = std::min(2 * next_, kLongest);
    ++count_;
    return pause;
  }
  void reset() noexcept { *this = {}; }
  // Pauses since the last reset.
  [[nodiscard]] unsigned count() const noexcept { return count_; }

 private:
  static constexpr std::chrono::milliseconds kLongest{1000};

  std::chrono::milliseconds next_{1};
  unsigned count_ = 0;
};

// A descriptor in reserve. While there is no other, it lets a connection be accepted, and refused.
class ReserveDescriptor {
 public:
  ReserveDescriptor() noexcept { (void)take(); }
  ~ReserveDescriptor() { give(); }
  ReserveDescriptor(const ReserveDescriptor&) = delete;
  ReserveDescriptor& operator=(const ReserveDescriptor&) = delete;

  // Takes it, unless it is held. False: the system has no descriptor left for it. (Where there is
  // no /dev/null, a program does without it.)
  [[nodiscard]] bool take() noexcept;
  // Gives it back to the system. False: it has none.
  bool give() noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace weft::net
