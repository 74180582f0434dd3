#include <weft/net/datagram_socket.hpp>

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "net/transfer.hpp"

namespace weft::net {

namespace {

// One system call transfers at most this many datagrams.
constexpr std::size_t kBatch = 64;

// Holds, on the caller's stack, the records that the system reads and fills in for a batch.
template <std::size_t N>
struct Batch {
  std::array<mmsghdr, N> headers;
  std::array<iovec, N> pieces;
  std::array<sockaddr_storage, N> names;

  void set(std::size_t i, std::span<const std::byte> data) noexcept {
    // The system does not write to what it sends.
    pieces[i] = {const_cast<std::byte*>(data.data()), data.size()};
    headers[i] = {};
    headers[i].msg_hdr.msg_iov = &pieces[i];
    headers[i].msg_hdr.msg_iovlen = 1;
  }
  void set_target(std::size_t i, SystemAddress to) noexcept {
    headers[i].msg_hdr.msg_name = const_cast<void*>(to.data);
    headers[i].msg_hdr.msg_namelen = static_cast<socklen_t>(to.size);
  }
  void make_room_for_name(std::size_t i) noexcept {
    headers[i].msg_hdr.msg_name = &names[i];
    headers[i].msg_hdr.msg_namelen = sizeof names[i];
  }
  template <class Where>
  [[nodiscard]] Received<Where> received(std::size_t i) const noexcept {
    const msghdr& header = headers[i].msg_hdr;
    return {.size = headers[i].msg_len,
            // Empty if the sender has no address.
            .from = Where::from_system(header.msg_name, header.msg_namelen).value,
            .truncated = (header.msg_flags & MSG_TRUNC) != 0};
  }
};

template <std::size_t N>
Result<std::size_t> receive_some(const Socket& socket, Batch<N>& batch, std::size_t count,
                                 const Until& until) noexcept {
  const io::IoUse use(socket.handle());
  if (!use) return {.error = Errc::closed};
  const auto [got, error] =
      attempt_until(use->read(), detail::WaitReason::readable, until, true, [&]() noexcept {
        for (std::size_t i = 0; i < count; ++i) batch.make_room_for_name(i);
        return receive_messages(use->descriptor(), std::span(batch.headers).first(count));
      });
  return {.value = static_cast<std::size_t>(got), .error = error};
}

// Makes one system call, once the socket has room.
Result<std::size_t> send_some(io::IoHandle& handle, std::span<mmsghdr> messages,
                              const Until& until) noexcept {
  return write_with(handle, until,
                    [&]() noexcept { return send_messages(handle.descriptor(), messages); });
}

// Sends likewise from an unconnected Unix socket. The system does not report when the receiver has
// room again, so this tries again after pauses of 1 ms to 50 ms.
Result<std::size_t> send_some_patiently(io::IoHandle& handle, std::span<mmsghdr> messages,
                                        const Until& until) noexcept {
  constexpr std::chrono::milliseconds kLongest{50};
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kLongest)) {
    const auto result = send_some(handle, messages, until.but_before(Deadline::after(pause)));
    if (result.error != Errc::timed_out) return result;
    if (until.is_over()) return {.error = until.reason()};  // Otherwise only the pause has ended.
  }
}

// Sends `count` datagrams in batches. `fill(batch, place, index)` assembles each datagram, and a
// function such as `send_some` sends the batch.
template <std::size_t N, class Fill>
Result<std::size_t> send_all(const Socket& socket, std::size_t count, const Until& until,
                             decltype(&send_some_patiently) send, Fill fill) noexcept {
  const io::IoUse use(socket.handle());
  if (!use) return {.error = Errc::closed};
  Batch<N> batch;
  std::size_t done = 0;
  while (done < count) {
    const std::size_t size = std::min(N, count - done);
    for (std::size_t i = 0; i < size; ++i) fill(batch, i, done + i);
    const auto [sent, error] = send(*use, std::span(batch.headers).first(size), until);
    if (error) return {.value = done, .error = error};
    done += sent;
  }
  return {.value = done};
}

template <class Where>
constexpr auto kSendTo = std::same_as<Where, UnixAddress> ? &send_some_patiently : &send_some;

}  // namespace

template <class Where>
Result<DatagramSocket<Where>> DatagramSocket<Where>::bind(const Where& address) {
  auto [socket, error] =
      make_socket(system_form(address).family(), SOCK_DGRAM,
                  [&](int descriptor) { return bind_to(descriptor, system_form(address)); });
  return {.value = DatagramSocket(std::move(socket)), .error = error};
}

template <class Where>
Result<DatagramSocket<Where>> DatagramSocket<Where>::open(const Where& like) {
  auto [socket, error] =
      make_socket(system_form(like).family(), SOCK_DGRAM, [](int) { return CallResult{}; });
  return {.value = DatagramSocket(std::move(socket)), .error = error};
}

template <class Where>
Result<DatagramSocket<Where>> DatagramSocket<Where>::connected(const Where& peer) {
  auto [socket, error] = make_socket(system_form(peer).family(), SOCK_DGRAM, [&](int descriptor) {
    return connect_to(descriptor, system_form(peer));
  });
  return {.value = DatagramSocket(std::move(socket)), .error = error};
}

template <class Where>
Result<void> DatagramSocket<Where>::connect(const Where& peer) noexcept {
  const io::IoUse use(socket_.handle());
  if (!use) return Errc::closed;
  return connect_to(use->descriptor(), system_form(peer)).code();
}

template <class Where>
Result<DatagramSocket<Where>> DatagramSocket<Where>::adopt(int descriptor) {
  auto [socket, error] = adopt_foreign(descriptor);
  return {.value = DatagramSocket(std::move(socket)), .error = error};
}

template <class Where>
Result<Received<Where>> DatagramSocket<Where>::receive(std::span<std::byte> buffer,
                                                       const Until& until) {
  Batch<1> batch;
  batch.set(0, buffer);
  const std::error_code error = receive_some(socket_, batch, 1, until).error;
  if (error) return {.error = error};
  return {.value = batch.template received<Where>(0)};
}

template <class Where>
Result<std::size_t> DatagramSocket<Where>::receive_batch(std::span<DatagramSlot<Where>> slots,
                                                         const Until& until) {
  if (slots.empty()) return {};
  Batch<kBatch> batch;
  const std::size_t most = std::min(kBatch, slots.size());
  for (std::size_t i = 0; i < most; ++i) batch.set(i, slots[i].buffer);
  const auto result = receive_some(socket_, batch, most, until);
  for (std::size_t i = 0; i < result.value; ++i) {
    slots[i].received = batch.template received<Where>(i);
  }
  return result;
}

template <class Where>
Result<void> DatagramSocket<Where>::send_to(std::span<const std::byte> data, const Where& to,
                                            const Until& until) {
  return send_all<1>(socket_, 1, until, kSendTo<Where>,
                     [&](Batch<1>& batch, std::size_t i, std::size_t) {
                       batch.set(i, data);
                       batch.set_target(i, system_form(to));
                     })
      .error;
}

template <class Where>
Result<void> DatagramSocket<Where>::send(std::span<const std::byte> data, const Until& until) {
  return send_all<1>(socket_, 1, until, &send_some,
                     [&](Batch<1>& batch, std::size_t i, std::size_t) { batch.set(i, data); })
      .error;
}

template <class Where>
Result<std::size_t> DatagramSocket<Where>::send_batch_to(std::span<const Outgoing<Where>> outgoing,
                                                         const Until& until) {
  return send_all<kBatch>(socket_, outgoing.size(), until, kSendTo<Where>,
                          [&](Batch<kBatch>& batch, std::size_t i, std::size_t index) {
                            batch.set(i, outgoing[index].data);
                            batch.set_target(i, system_form(outgoing[index].to));
                          });
}

template <class Where>
Result<std::size_t> DatagramSocket<Where>::send_batch(
    std::span<const std::span<const std::byte>> data, const Until& until) {
  return send_all<kBatch>(
      socket_, data.size(), until, &send_some,
      [&](Batch<kBatch>& batch, std::size_t i, std::size_t index) { batch.set(i, data[index]); });
}

template <class Where>
Result<Where> DatagramSocket<Where>::local_address() const noexcept {
  return address_of<Where>(socket_, &name_of);
}
template <class Where>
Result<Where> DatagramSocket<Where>::peer_address() const noexcept {
  return address_of<Where>(socket_, &peer_of);
}

template <class Where>
Result<void> DatagramSocket<Where>::set_send_buffer(int bytes) noexcept {
  return set_option_of(socket_, SOL_SOCKET, SO_SNDBUF, bytes);
}
template <class Where>
Result<void> DatagramSocket<Where>::set_receive_buffer(int bytes) noexcept {
  return set_option_of(socket_, SOL_SOCKET, SO_RCVBUF, bytes);
}
template <class Where>
Result<void> DatagramSocket<Where>::set_broadcast(
    bool allowed) noexcept requires std::same_as<Where, Address> {
  return set_option_of(socket_, SOL_SOCKET, SO_BROADCAST, allowed ? 1 : 0);
}

template class DatagramSocket<Address>;
template class DatagramSocket<UnixAddress>;

}  // namespace weft::net
