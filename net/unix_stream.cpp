#include <weft/net/unix_stream.hpp>

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <weft/this_fiber.hpp>

#include "net/transfer.hpp"

namespace weft::net {

namespace {

constexpr std::size_t kMostDescriptors = 64;

// The space for descriptors in a message.
struct alignas(cmsghdr) ControlRoom {
  std::array<std::byte, CMSG_SPACE(kMostDescriptors * sizeof(int))> bytes{};
};

msghdr message_of(iovec& piece, ControlRoom& control, std::size_t control_size) noexcept {
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control_size == 0 ? nullptr : control.bytes.data();
  message.msg_controllen = control_size;
  return message;
}

// `found` has room for all descriptors.
void take_descriptors(msghdr& message, std::vector<Descriptor>& found) noexcept {
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(each) + i * sizeof(int), sizeof descriptor);
      found.emplace_back(descriptor);
    }
  }
}

}  // namespace

// A read from such a socket ends where descriptors came with the bytes, and where the sender
// changes. So a short read does not show that the socket is empty.
UnixStream::UnixStream(Socket socket) noexcept : ByteStream(std::move(socket)) {
  if (const io::IoUse use(socket_.handle()); use) use->read().set_always_worth_trying();
}

Result<UnixStream> UnixStream::connect(const UnixAddress& address, const Until& until) {
  constexpr std::chrono::milliseconds kLongest{50};
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kLongest)) {
    auto [socket, error] = make_socket(AF_UNIX, SOCK_STREAM, [&](int descriptor) {
      return connect_to(descriptor, system_form(address));
    });
    if (!error) return {.value = UnixStream(std::move(socket))};
    if (error != std::errc::resource_unavailable_try_again) return {.error = error};
    if (!this_fiber::sleep_for(pause, until)) {
      return {.error = until.reason()};
    }
  }
}

Result<UnixStreamPair> UnixStream::pair() {
  const auto [poller, no_poller] = find_poller();
  if (no_poller) return {.error = no_poller};
  std::array<int, 2> ends{};
  const CallResult opened = open_pair(ends);
  if (opened.error != 0) return {.error = opened.code()};
  Descriptor other(ends[1]);
  auto [first, first_refused] = net::adopt(*poller, ends[0]);
  if (first_refused) return {.error = first_refused};
  auto [second, second_refused] = net::adopt(*poller, other.release());
  if (second_refused) return {.error = second_refused};
  return {.value = {UnixStream(std::move(first)), UnixStream(std::move(second))}};
}

Result<UnixStream> UnixStream::adopt(int descriptor) {
  auto [socket, error] = adopt_foreign(descriptor);
  return {.value = UnixStream(std::move(socket)), .error = error};
}

Result<PeerCredentials> UnixStream::peer_credentials() const noexcept {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  ucred peer{};
  const CallResult result = get_option(use->descriptor(), SOL_SOCKET, SO_PEERCRED,
                                       std::as_writable_bytes(std::span(&peer, 1)));
  return {.value = {peer.pid, peer.uid, peer.gid}, .error = result.code()};
}

Result<UnixAddress> UnixStream::local_address() const noexcept {
  return address_of<UnixAddress>(socket_, &name_of);
}
Result<UnixAddress> UnixStream::peer_address() const noexcept {
  return address_of<UnixAddress>(socket_, &peer_of);
}

Result<std::size_t> UnixStream::send_descriptors(std::span<const std::byte> data,
                                                 std::span<const int> descriptors,
                                                 const Until& until) {
  if (data.empty() || descriptors.size() > kMostDescriptors) {
    return {.error = std::make_error_code(std::errc::invalid_argument)};
  }
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  // The system does not write to what it sends.
  iovec piece{const_cast<std::byte*>(data.data()), data.size()};
  ControlRoom control;
  const std::size_t room = descriptors.empty() ? 0 : CMSG_SPACE(descriptors.size_bytes());
  const msghdr message = message_of(piece, control, room);
  if (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return write_with(*use, until,
                    [&]() noexcept { return send_message(use->descriptor(), message); });
}

Result<ReceivedDescriptors> UnixStream::receive_descriptors(std::span<std::byte> buffer,
                                                            const Until& until) {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  if (buffer.empty()) return {};
  iovec piece{buffer.data(), buffer.size()};
  ControlRoom control;
  msghdr message{};
  Result<ReceivedDescriptors> result;
  result.value.descriptors.reserve(kMostDescriptors);  // No byte has come yet that could be lost.
  const auto [count, error] =
      attempt_until(use->read(), detail::WaitReason::readable, until, true, [&]() noexcept {
        message = message_of(piece, control, sizeof control.bytes);
        return receive_message(use->descriptor(), message);
      });
  if (error) return {.error = error};
  result.value.size = static_cast<std::size_t>(count);
  take_descriptors(message, result.value.descriptors);
  if (count == 0) result.error = Errc::end_of_stream;
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    result.value.descriptors.clear();
    result.error = std::make_error_code(std::errc::too_many_files_open);
  }
  return result;
}

}  // namespace weft::net
