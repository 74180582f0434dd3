#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <weft/net/tcp_listener.hpp>

#include "net/transfer.hpp"

namespace weft::net {

namespace {

// The connection ended, or its network failed, while it waited to be accepted: not the
// listener's fault, and the next one may be fine.
bool concerns_one_connection(int error) noexcept {
  switch (error) {
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENONET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

CallResult prepare(int descriptor, const Address& address, const ListenOptions& options) noexcept {
  CallResult result;
  if (options.reuse_address) result = set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  if (result.error == 0 && options.reuse_port) {
    result = set_option(descriptor, SOL_SOCKET, SO_REUSEPORT, 1);
  }
  // Accepted sockets inherit it, which saves a system call for each.
  if (result.error == 0) result = set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  if (result.error == 0) result = bind_to(descriptor, address);
  if (result.error == 0) result = start_listening(descriptor, options.backlog);
  return result;
}

}  // namespace

Result<TcpListener> TcpListener::listen(const Address& address, const ListenOptions& options) {
  const auto [poller, no_poller] = find_poller();
  if (no_poller) return {.error = no_poller};
  const CallResult opened = open_tcp(address);
  if (opened.error != 0) return {.error = opened.code()};
  const int descriptor = static_cast<int>(opened.value);
  const CallResult prepared = prepare(descriptor, address, options);
  if (prepared.error != 0) {
    close_descriptor(descriptor);
    return {.error = prepared.code()};
  }
  auto [socket, refused] = adopt(*poller, descriptor);
  return {.value = TcpListener(std::move(socket)), .error = refused};
}

Result<TcpStream> TcpListener::accept(const Until& until) {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  const auto attempt = [descriptor = use->descriptor()]() noexcept {
    for (;;) {
      const CallResult result = accept_from(descriptor);
      if (!concerns_one_connection(result.error)) return result;
    }
  };
  io::IoDirection& direction = use->read();
  (void)direction.worth_trying();  // Forgets edges that the attempt will see anyway.
  const auto [descriptor, error] =
      attempt_until(direction, detail::WaitReason::readable, until, true, attempt);
  if (error) return {.error = error};
  auto [socket, refused] = adopt(use->poller(), static_cast<int>(descriptor));
  return {.value = TcpStream(std::move(socket)), .error = refused};
}

Result<Address> TcpListener::local_address() const noexcept {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  return name_of(use->descriptor());
}

}  // namespace weft::net
