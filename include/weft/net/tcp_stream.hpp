// A TCP connection.
#pragma once

#include <chrono>
#include <optional>
#include <system_error>
#include <utility>
#include <weft/net/address.hpp>
#include <weft/net/byte_stream.hpp>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/until.hpp>

namespace weft::net {

// When a connection on which nothing comes is asked whether its peer is still there.
struct KeepAlive {
  std::chrono::seconds idle{60};      // Silence before the first question,
  std::chrono::seconds interval{10};  // between two questions; at least 1 s each.
  int probes = 6;                     // Questions without an answer that end the connection.
};

struct ConnectOptions {
  // The end's own address, if it is to be a certain one; port 0: any.
  std::optional<Address> local = {};
  // TCP Fast Open: with a peer that was connected to before, connect() returns at once, and the
  // first write travels with the request for the connection. So that write may report what
  // connect() would have. Where the system or the peer does not know it, nothing changes.
  bool fast_open = false;
};

// A ByteStream over TCP; all that is said there holds.
class TcpStream : public ByteStream {
 public:
  using ByteStream::ByteStream;

  // Connects, with TCP_NODELAY set. Parks. Errors: Errc::timed_out, cancelled; Errc::no_runtime
  // from a plain thread without one; or the system's (connection_refused, ...).
  static Result<TcpStream> connect(const Address& address, const Until& until = {},
                                   const ConnectOptions& options = {});

  // Takes over a connected socket of another library, and makes it non-blocking; release() is the
  // other way round. Errors: Errc::no_runtime, Errc::already_watched, or the system's; the
  // descriptor remains the caller's then. Never parks.
  static Result<TcpStream> adopt(int descriptor);

  // The next five never park. Errors: Errc::closed, or the system's.
  // Whether small writes are sent at once (as they are unless this is called) or gathered.
  [[nodiscard]] std::error_code set_no_delay(bool no_delay) noexcept;
  // Nothing: silence is never asked about, as when this is not called. Times or counts that the
  // system does not take, as more than 9 hours (32 767 s), are std::errc::invalid_argument.
  [[nodiscard]] std::error_code set_keep_alive(const std::optional<KeepAlive>& options) noexcept;
  // Whether closing resets the connection at once, and drops what the peer has not confirmed
  // (SO_LINGER with a time of 0); unless this is called, the system sends it in the background. A
  // longer time cannot be asked for: the system would keep the closing thread waiting for it.
  [[nodiscard]] std::error_code set_reset_on_close(bool resets) noexcept;
  // How long bytes that were sent may remain unconfirmed until the connection fails with timed_out
  // (TCP_USER_TIMEOUT). It counts whole milliseconds, 2^31 - 1 at most (24 days): a longer time is
  // that long. 0: as long as the system likes, 15 minutes or so.
  [[nodiscard]] std::error_code set_user_timeout(std::chrono::milliseconds time) noexcept;
  // This end's. Never parks. Errors: Errc::closed; the system's.
  Result<Address> local_address() const noexcept;
  // The other end's. Never parks. Errors: as local_address().
  Result<Address> peer_address() const noexcept;
};

}  // namespace weft::net
