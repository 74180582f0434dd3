#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <weft/net/tcp_stream.hpp>

#include "net/transfer.hpp"

namespace weft::net {

namespace {

// Waits until the connection that was begun is established or has failed.
std::error_code finish_connecting(const Socket& socket, const Address& address,
                                  const Until& until) noexcept {
  const io::IoUse use(socket.handle());
  const auto attempt = [&]() noexcept {
    CallResult result = connect_to(use->descriptor(), system_form(address));
    // A second connect() returns the actual state, whereas an edge is only a hint.
    if (result.error == EALREADY || result.error == EINPROGRESS) result.error = EAGAIN;
    if (result.error == EISCONN) result.error = 0;
    return result;
  };
  return attempt_until(use->write(), detail::WaitReason::writable, until, false, attempt).error;
}

// If no socket listens on a port of the ephemeral range, the connecting socket itself may get that
// port. TCP then connects it to itself. There is no server, so this reports a refusal.
std::error_code refuse_self(const Socket& socket, const Address& address) noexcept {
  const Result<Address> local = address_of<Address>(socket, &name_of);
  if (local && local.value == address) return std::make_error_code(std::errc::connection_refused);
  return local.error;
}

// Applies `options` to the socket before it connects.
CallResult prepare(int descriptor, const ConnectOptions& options) noexcept {
  CallResult result = set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  // Some systems lack the option, and no program depends on it.
  if (options.fast_open) (void)set_option(descriptor, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1);
  if (result.error == 0 && options.local) {
    result = bind_to(descriptor, system_form(*options.local));
  }
  return result;
}

// A time in the unit of the system; a longer time than the system supports becomes the longest.
template <class Rep, class Period>
int option_of(std::chrono::duration<Rep, Period> time) noexcept {
  using Limits = std::numeric_limits<int>;
  return static_cast<int>(std::clamp<Rep>(time.count(), Limits::min(), Limits::max()));
}

}  // namespace

Result<TcpStream> TcpStream::connect(const Address& address, const ConnectOptions& options,
                                     const Until& until) {
  CallResult started;
  // Registered only after connect() has begun: before that, a socket counts as hung up.
  auto [socket, error] =
      make_socket(system_form(address).family(), SOCK_STREAM, [&](int descriptor) {
        const CallResult prepared = prepare(descriptor, options);
        if (prepared.error != 0) return prepared;
        started = connect_to(descriptor, system_form(address));
        // A signal may have interrupted the connect() that began the connection; a second connect()
        // returns its state.
        if (started.error == EALREADY) started.error = EINPROGRESS;
        return started.error == EINPROGRESS ? CallResult{} : started;
      });
  if (error) return {.error = error};
  if (started.error == EINPROGRESS) {
    if (const auto failed = finish_connecting(socket, address, until)) return {.error = failed};
  }
  if (const auto failed = refuse_self(socket, address)) return {.error = failed};
  return {.value = TcpStream(std::move(socket))};
}

Result<TcpStream> TcpStream::adopt(int descriptor) {
  auto [socket, error] = adopt_foreign(descriptor);
  return {.value = TcpStream(std::move(socket)), .error = error};
}

Result<void> TcpStream::set_no_delay(bool no_delay) noexcept {
  return set_option_of(socket_, IPPROTO_TCP, TCP_NODELAY, no_delay ? 1 : 0);
}

Result<void> TcpStream::set_keep_alive(const std::optional<KeepAlive>& options) noexcept {
  if (!options) return set_option_of(socket_, SOL_SOCKET, SO_KEEPALIVE, 0);
  std::error_code error =
      set_option_of(socket_, IPPROTO_TCP, TCP_KEEPIDLE, option_of(options->idle));
  if (!error) {
    error = set_option_of(socket_, IPPROTO_TCP, TCP_KEEPINTVL, option_of(options->interval));
  }
  if (!error) error = set_option_of(socket_, IPPROTO_TCP, TCP_KEEPCNT, options->probes);
  if (!error) error = set_option_of(socket_, SOL_SOCKET, SO_KEEPALIVE, 1);
  return error;
}

Result<void> TcpStream::set_reset_on_close(bool resets) noexcept {
  const linger option{.l_onoff = resets ? 1 : 0, .l_linger = 0};
  return set_option_of(socket_, SOL_SOCKET, SO_LINGER, option);
}

Result<void> TcpStream::set_user_timeout(std::chrono::milliseconds time) noexcept {
  return set_option_of(socket_, IPPROTO_TCP, TCP_USER_TIMEOUT, option_of(time));
}

Result<Address> TcpStream::local_address() const noexcept {
  return address_of<Address>(socket_, &name_of);
}
Result<Address> TcpStream::peer_address() const noexcept {
  return address_of<Address>(socket_, &peer_of);
}

}  // namespace weft::net
