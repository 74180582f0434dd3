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
  for (Pauses pauses;;) {
    Result<TcpStream> result = accept_once(*use, until);
    if (!passes_by_itself(result.error) || until.is_over()) return result;
    // Ended early by the next connection, which is no worse.
    const Deadline pause = Deadline::after(pauses.next());
    const io::WaitOutcome outcome =
        use->read().wait(until.but_before(pause), detail::WaitReason::readable);
    if (outcome == io::WaitOutcome::closed) return {.error = Errc::closed};
  }
}

Result<Address> TcpListener::local_address() const noexcept {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  return name_of(use->descriptor());
}

}  // namespace weft::net
