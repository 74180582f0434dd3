#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <weft/net/tcp_listener.hpp>

#include "net/accept.hpp"
#include "net/transfer.hpp"

namespace weft::net {

namespace {

CallResult prepare(int descriptor, const Address& address, const ListenOptions& options) noexcept {
  CallResult result;
  if (options.reuse_address) result = set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  if (result.error == 0 && options.reuse_port) {
    result = set_option(descriptor, SOL_SOCKET, SO_REUSEPORT, 1);
  }
  // Accepted sockets inherit the option, which saves a system call for each.
  if (result.error == 0) result = set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  // Some systems lack the option, and no program depends on it.
  if (options.fast_open_queue > 0) {
    (void)set_option(descriptor, IPPROTO_TCP, TCP_FASTOPEN, options.fast_open_queue);
  }
  if (result.error == 0) result = bind_to(descriptor, system_form(address));
  if (result.error == 0) result = start_listening(descriptor, options.backlog);
  return result;
}

}  // namespace

Result<TcpListener> TcpListener::listen(const Address& address, const ListenOptions& options) {
  auto [socket, error] =
      make_socket(system_form(address).family(), SOCK_STREAM,
                  [&](int descriptor) { return prepare(descriptor, address, options); });
  return {.value = TcpListener(std::move(socket)), .error = error};
}

Result<TcpStream> TcpListener::accept(const Until& until) {
  auto [socket, error] = accept_patiently(socket_, until);
  return {.value = TcpStream(std::move(socket)), .error = error};
}

Result<Address> TcpListener::local_address() const noexcept {
  return address_of<Address>(socket_, &name_of);
}

}  // namespace weft::net
