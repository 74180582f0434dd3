#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <weft/net/tcp_stream.hpp>

#include "net/transfer.hpp"

namespace weft::net {

namespace {

// Waits until the connection that has been started is there, or has failed.
std::error_code finish_connecting(const Socket& socket, const Address& address,
                                  const Until& until) noexcept {
  const io::IoUse use(socket.handle());
  const auto attempt = [&]() noexcept {
    CallResult result = connect_to(use->descriptor(), address);
    // Asked again, the kernel says how far it is: that is certain, where an edge is a hint.
    if (result.error == EALREADY || result.error == EINPROGRESS) result.error = EAGAIN;
    if (result.error == EISCONN) result.error = 0;
    return result;
  };
  return attempt_until(use->write(), detail::WaitReason::writable, until, false, attempt).error;
}

// A port of the ephemeral range that nobody listens on may be given to the connecting socket
// itself, which TCP then connects to itself. Nobody is there: that is a refusal.
std::error_code refuse_self(int descriptor, const Address& address) noexcept {
  const Result<Address> local = name_of(descriptor);
  if (local && local.value == address) return std::make_error_code(std::errc::connection_refused);
  return local.error;
}

// One read, for a caller that has entered the handle.
Result<std::size_t> read_once(io::IoHandle& handle, std::span<std::byte> buffer,
                              const Until& until) noexcept {
  io::IoDirection& direction = handle.read();
  const auto [count, error] =
      attempt_until(direction, detail::WaitReason::readable, until, direction.worth_trying(),
                    [&]() noexcept { return receive(handle.descriptor(), buffer); });
  if (error) return {.error = error};
  if (count == 0) return {.error = Errc::end_of_stream};
  const auto bytes = static_cast<std::size_t>(count);
  // A short read has emptied the socket; what comes later makes an edge.
  direction.set_drained(bytes < buffer.size());
  return {.value = bytes};
}

Result<std::size_t> write_once(io::IoHandle& handle, std::span<const std::byte> data,
                               const Until& until) noexcept {
  // Edges are not forgotten first, as there is one with almost every event: a stale one costs an
  // attempt in the rare case that the socket is full.
  const auto [count, error] =
      attempt_until(handle.write(), detail::WaitReason::writable, until, true,
                    [&]() noexcept { return send(handle.descriptor(), data); });
  return {.value = static_cast<std::size_t>(count), .error = error};
}

}  // namespace

Result<TcpStream> TcpStream::connect(const Address& address, const Until& until) {
  const auto [poller, no_poller] = find_poller();
  if (no_poller) return {.error = no_poller};
  const CallResult opened = open_tcp(address);
  if (opened.error != 0) return {.error = opened.code()};
  const int descriptor = static_cast<int>(opened.value);
  CallResult started = set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  if (started.error == 0) started = connect_to(descriptor, address);
  // A signal may have come after the connection was begun; asked again, the kernel says so.
  if (started.error == EALREADY) started.error = EINPROGRESS;
  if (started.error != 0 && started.error != EINPROGRESS) {
    close_descriptor(descriptor);
    return {.error = started.code()};
  }
  // Registered only now: a socket that has not been told to connect counts as hung up.
  auto [socket, refused] = net::adopt(*poller, descriptor);
  if (refused) return {.error = refused};
  if (started.error == EINPROGRESS) {
    if (const auto error = finish_connecting(socket, address, until)) return {.error = error};
  }
  if (const auto error = refuse_self(descriptor, address)) return {.error = error};
  return {.value = TcpStream(std::move(socket))};
}

Result<TcpStream> TcpStream::adopt(int descriptor) {
  const auto [poller, no_poller] = find_poller();
  if (no_poller) return {.error = no_poller};
  const CallResult prepared = set_non_blocking(descriptor);
  if (prepared.error != 0) return {.error = prepared.code()};
  io::IoHandle* handle = nullptr;
  const std::error_code refused = poller->add(descriptor, handle);
  return {.value = TcpStream(Socket(handle)), .error = refused};
}

std::error_code TcpStream::wait_readable(const Until& until) {
  const io::IoUse use(socket_.handle());
  if (!use) return Errc::closed;
  io::IoDirection& direction = use->read();
  const auto attempt = [descriptor = use->descriptor()]() noexcept {
    return CallResult{0, is_readable(descriptor) ? 0 : EAGAIN};
  };
  const std::error_code error = attempt_until(direction, detail::WaitReason::readable, until,
                                              direction.worth_trying(), attempt)
                                    .error;
  // The wait may have used up the edge that the next read would look for.
  if (!error) direction.set_drained(false);
  return error;
}

Result<std::size_t> TcpStream::read_some(std::span<std::byte> buffer, const Until& until) {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  if (buffer.empty()) return {};
  return read_once(*use, buffer, until);
}

Result<std::size_t> TcpStream::read_exactly(std::span<std::byte> buffer, const Until& until) {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  std::size_t done = 0;
  while (done < buffer.size()) {
    const auto [count, error] = read_once(*use, buffer.subspan(done), until);
    if (error) return {.value = done, .error = error};
    done += count;
  }
  return {.value = done};
}

Result<std::size_t> TcpStream::write_some(std::span<const std::byte> data, const Until& until) {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  if (data.empty()) return {};
  return write_once(*use, data, until);
}

Result<std::size_t> TcpStream::write_all(std::span<const std::byte> data, const Until& until) {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  std::size_t done = 0;
  while (done < data.size()) {
    const auto [count, error] = write_once(*use, data.subspan(done), until);
    if (error) return {.value = done, .error = error};
    done += count;
  }
  return {.value = done};
}

void TcpStream::set_read_deadline(Deadline deadline) noexcept {
  const io::IoUse use(socket_.handle());
  if (use) use->read().set_deadline(deadline);
}

void TcpStream::set_write_deadline(Deadline deadline) noexcept {
  const io::IoUse use(socket_.handle());
  if (use) use->write().set_deadline(deadline);
}

std::error_code TcpStream::shutdown(Shutdown direction) noexcept {
  const io::IoUse use(socket_.handle());
  if (!use) return Errc::closed;
  int how = SHUT_RDWR;
  if (direction == Shutdown::read) how = SHUT_RD;
  if (direction == Shutdown::write) how = SHUT_WR;
  return shut_down(use->descriptor(), how).code();
}

std::error_code TcpStream::set_no_delay(bool no_delay) noexcept {
  const io::IoUse use(socket_.handle());
  if (!use) return Errc::closed;
  return set_option(use->descriptor(), IPPROTO_TCP, TCP_NODELAY, no_delay ? 1 : 0).code();
}

Result<Address> TcpStream::local_address() const noexcept {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  return name_of(use->descriptor());
}

Result<Address> TcpStream::peer_address() const noexcept {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  return peer_of(use->descriptor());
}

}  // namespace weft::net
