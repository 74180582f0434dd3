#include <weft/net/byte_stream.hpp>

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "net/transfer.hpp"

namespace weft::net {

namespace {

// One system call transfers at most this many pieces.
constexpr std::size_t kPieces = 64;
using Pieces = std::array<iovec, kPieces>;

// Reads at most `size` bytes with one call to `take`, which returns a CallResult. The caller has
// entered the handle.
template <class Take>
Result<std::size_t> read_once(io::IoHandle& handle, std::size_t size, const Until& until,
                              Take take) noexcept {
  io::IoDirection& direction = handle.read();
  const auto [count, error] =
      attempt_until(direction, detail::WaitReason::readable, until, direction.worth_trying(), take);
  if (error) return {.error = error};
  if (count == 0) return {.error = Errc::end_of_stream};
  const auto bytes = static_cast<std::size_t>(count);
  // A short read has emptied the socket, and later data causes an edge. Where this does not hold,
  // the direction records that an attempt is always worthwhile.
  direction.set_drained(bytes < size);
  return {.value = bytes};
}

Result<std::size_t> read_once(io::IoHandle& handle, std::span<std::byte> buffer,
                              const Until& until) noexcept {
  return read_once(handle, buffer.size(), until,
                   [&]() noexcept { return receive(handle.descriptor(), buffer); });
}

Result<std::size_t> write_once(io::IoHandle& handle, std::span<const std::byte> data,
                               const Until& until) noexcept {
  return write_with(handle, until, [&]() noexcept { return send(handle.descriptor(), data); });
}

msghdr message_of(std::span<iovec> pieces) noexcept {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return message;
}

// Returns the pieces after the first `done` bytes, but at most as many as one system call accepts.
std::span<iovec> rest_of(std::span<const std::span<const std::byte>> pieces, std::size_t done,
                         Pieces& room) noexcept {
  std::size_t count = 0;
  for (const std::span<const std::byte> piece : pieces) {
    if (count == kPieces) break;
    const std::size_t gone = std::min(done, piece.size());
    done -= gone;
    const std::span<const std::byte> left = piece.subspan(gone);
    // The system does not write to what it sends.
    if (!left.empty()) room[count++] = {const_cast<std::byte*>(left.data()), left.size()};
  }
  return std::span(room).first(count);
}

}  // namespace

Result<void> ByteStream::wait_readable(const Until& until) {
  const io::IoUse use(socket_.handle());
  if (!use) return Errc::closed;
  io::IoDirection& direction = use->read();
  const auto attempt = [descriptor = use->descriptor()]() noexcept {
    return CallResult{0, is_readable(descriptor) ? 0 : EAGAIN};
  };
  const std::error_code error = attempt_until(direction, detail::WaitReason::readable, until,
                                              direction.worth_trying(), attempt)
                                    .error;
  // The wait may have consumed the edge that the next read would check.
  if (!error) direction.set_drained(false);
  return error;
}

Result<std::size_t> ByteStream::read_some(std::span<std::byte> buffer, const Until& until) {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  if (buffer.empty()) return {};
  return read_once(*use, buffer, until);
}

Result<std::size_t> ByteStream::read_exactly(std::span<std::byte> buffer, const Until& until) {
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

Result<std::size_t> ByteStream::read_scattered(std::span<const std::span<std::byte>> buffers,
                                               const Until& until) {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  Pieces room;
  std::size_t count = 0;
  std::size_t size = 0;
  for (const std::span<std::byte> buffer : buffers.first(std::min(buffers.size(), kPieces))) {
    room[count++] = {buffer.data(), buffer.size()};
    size += buffer.size();
  }
  if (size == 0) return {};
  const std::span<iovec> pieces = std::span(room).first(count);
  return read_once(*use, size, until, [&]() noexcept {
    msghdr message = message_of(pieces);
    return receive_message(use->descriptor(), message);
  });
}

Result<std::size_t> ByteStream::write_some(std::span<const std::byte> data, const Until& until) {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  if (data.empty()) return {};
  return write_once(*use, data, until);
}

Result<std::size_t> ByteStream::write_all(std::span<const std::byte> data, const Until& until) {
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

Result<std::size_t> ByteStream::write_gathered(std::span<const std::span<const std::byte>> pieces,
                                               const Until& until) {
  const io::IoUse use(socket_.handle());
  if (!use) return {.error = Errc::closed};
  Pieces room;
  std::size_t total = 0;
  std::size_t passed = 0;  // Bytes written before `pieces`.
  for (;;) {
    while (!pieces.empty() && passed + pieces.front().size() <= total) {
      passed += pieces.front().size();
      pieces = pieces.subspan(1);
    }
    const std::span<iovec> rest = rest_of(pieces, total - passed, room);
    if (rest.empty()) return {.value = total};
    const msghdr message = message_of(rest);
    const auto [count, error] = write_with(
        *use, until, [&]() noexcept { return send_message(use->descriptor(), message); });
    if (error) return {.value = total, .error = error};
    total += count;
  }
}

void ByteStream::set_read_deadline(Deadline deadline) noexcept {
  const io::IoUse use(socket_.handle());
  if (use) use->read().set_deadline(deadline);
}

void ByteStream::set_write_deadline(Deadline deadline) noexcept {
  const io::IoUse use(socket_.handle());
  if (use) use->write().set_deadline(deadline);
}

Result<void> ByteStream::shutdown(Shutdown direction) noexcept {
  const io::IoUse use(socket_.handle());
  if (!use) return Errc::closed;
  int how = SHUT_RDWR;
  if (direction == Shutdown::read) how = SHUT_RD;
  if (direction == Shutdown::write) how = SHUT_WR;
  return shut_down(use->descriptor(), how).code();
}

Result<void> ByteStream::set_send_buffer(int bytes) noexcept {
  return set_option_of(socket_, SOL_SOCKET, SO_SNDBUF, bytes);
}
Result<void> ByteStream::set_receive_buffer(int bytes) noexcept {
  return set_option_of(socket_, SOL_SOCKET, SO_RCVBUF, bytes);
}

}  // namespace weft::net
