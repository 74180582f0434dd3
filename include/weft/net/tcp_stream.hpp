// Provides TCP connections.
#pragma once

#include <chrono>
#include <optional>
#include <utility>
#include <weft/net/address.hpp>
#include <weft/net/byte_stream.hpp>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/until.hpp>

namespace weft::net {

// Configures the probes that test whether the peer of a silent connection still responds.
struct KeepAlive {
  std::chrono::seconds idle{60};      // The silence before the first probe; at least 1 s.
  std::chrono::seconds interval{10};  // The time between two probes; at least 1 s.
  int probes = 6;                     // The number of unanswered probes that ends the connection.
};

struct ConnectOptions {
  // The local address to bind, if any; port 0 means any port.
  std::optional<Address> local = {};
  // Whether to use TCP Fast Open: with a known peer, connect() returns at once, and the first write
  // is sent with the connection request. That write may then report the connection error. Has no
  // effect if the system or the peer does not support it.
  bool fast_open = false;
};

// Implements a ByteStream over TCP.
// Context, Errors, Throws: the same as for ByteStream.
class TcpStream : public ByteStream {
 public:
  using ByteStream::ByteStream;

  // Connects to `address` and sets TCP_NODELAY; parks.
  // Errors: Errc::timed_out, cancelled; Errc::no_runtime on a plain thread without a runtime;
  // system errors (connection_refused, ...).
  static Result<TcpStream> connect(const Address& address, const ConnectOptions& options,
                                   const Until& until = Until::ambient());
  static Result<TcpStream> connect(const Address& address, const Until& until = Until::ambient()) {
    return connect(address, ConnectOptions{}, until);
  }

  // Takes over a connected socket from another library and makes it non-blocking; release() gives
  // it back. After an error the caller still owns the descriptor.
  // Errors: also Errc::no_runtime; already_watched if the runtime already watches `descriptor`.
  static Result<TcpStream> adopt(int descriptor);

  // Sets whether small writes are sent at once (the default, except after adopt()) or combined.
  [[nodiscard]] Result<void> set_no_delay(bool no_delay) noexcept;
  // Sets how the system probes a silent peer. Without a value (the default), there are no probes.
  // Errors: also std::errc::invalid_argument for values that the system refuses, such as more than
  // 9 hours (32 767 s).
  [[nodiscard]] Result<void> set_keep_alive(const std::optional<KeepAlive>& options) noexcept;
  // Sets whether closing resets the connection and drops unacknowledged bytes (SO_LINGER with 0).
  // By default, the system still sends these bytes; but if received bytes are unread, it resets the
  // connection. A longer linger time is not offered, because it would block the closing thread.
  [[nodiscard]] Result<void> set_reset_on_close(bool resets) noexcept;
  // Sets how long sent bytes may stay unacknowledged before the connection fails with timed_out
  // (TCP_USER_TIMEOUT). The call caps `time` at 2^31 - 1 ms (24 days). 0 means the system's
  // default, about 15 minutes.
  [[nodiscard]] Result<void> set_user_timeout(std::chrono::milliseconds time) noexcept;
  // Returns the local address.
  Result<Address> local_address() const noexcept;
  // Returns the peer's address.
  Result<Address> peer_address() const noexcept;
};

}  // namespace weft::net
