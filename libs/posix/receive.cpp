// Calls that read from sockets, pipes and files.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "libs/posix/hooks.hpp"
#include "libs/posix/waiting.hpp"

namespace weft::posix {

namespace {

constinit Real<decltype(::recv)> real_recv("recv");
constinit Real<decltype(::recvfrom)> real_recvfrom("recvfrom");
constinit Real<decltype(::recvmsg)> real_recvmsg("recvmsg");
constinit Real<decltype(::recvmmsg)> real_recvmmsg("recvmmsg");
constinit Real<decltype(::read)> real_read("read");
constinit Real<decltype(::readv)> real_readv("readv");

// A receive with one of these flags returns at once on a thread, too.
constexpr int kNeverWaits = MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB;

// Notes for the next wait whether a receive has found nothing. Keeps errno.
ssize_t note_attempt(FiberState* state, int fd, ssize_t received) noexcept {
  if (state != nullptr) state->asked = received < 0 && errno == EAGAIN ? fd : -1;
  return received;
}

template <class Attempt, class Plain, class Request = NoRequest>
ssize_t receive(FiberState& state, const Call& call, int fd, Attempt attempt, Plain plain,
                Request request = {}) {
  Place place(state, fd);
  const Begin begin = std::exchange(state.asked, -1) == fd ? Begin::wait : Begin::attempt;
  const ssize_t received =
      until_done(place, call, io::Ready::read, SO_RCVTIMEO, attempt, plain, begin, request);
  return note_attempt(&state, fd, received);
}

// The request does the same as recvmsg(). Kernels before 6.4 refuse control data in such a request.
// MSG_WAITALL and MSG_PEEK have special rules for data that arrives before the end of a wait.
auto request_of(msghdr& message, int flags) noexcept {
  return [&message, flags](int descriptor, const Until& until) -> detail::OneShot {
    if ((flags & (MSG_WAITALL | MSG_PEEK)) != 0 || message.msg_control != nullptr) return {};
    return detail::receive_once(descriptor, message, flags, until);
  };
}

msghdr message_of(const iovec* parts, std::size_t count) noexcept {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = count;
  return message;
}

// As on a thread, waits for all bytes, unless an error, the end or a signal comes first.
ssize_t receive_all(FiberState& state, const Call& call, int fd, void* buffer, std::size_t size,
                    int flags) {
  Place place(state, fd);
  std::size_t done = 0;
  do {
    char* at = static_cast<char*>(buffer) + done;
    const std::size_t left = size - done;
    const ssize_t got = until_done(
        place, call, io::Ready::read, SO_RCVTIMEO,
        [=](int descriptor) { return real_recv(descriptor, at, left, flags | MSG_DONTWAIT); },
        [=](int descriptor) { return real_recv(descriptor, at, left, flags); });
    if (got < 0 && done == 0) return got;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  } while (done < size && !place.is_non_blocking());
  return static_cast<ssize_t>(done);
}

// Used where preadv2() does not support RWF_NOWAIT. If another reader takes the data between the
// two calls, the second call blocks the worker.
ssize_t read_if_ready(int fd, const iovec* parts, int count) {
  const int refused = check_ready(fd, POLLIN);
  return refused != 0 ? refused : real_readv(fd, parts, count);
}

ssize_t read_without_waiting(int fd, const iovec* parts, int count) {
  const ssize_t got = ::preadv2(fd, parts, count, -1, RWF_NOWAIT);
  if (got >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS)) return got;
  return read_if_ready(fd, parts, count);
}

// Returns whether the page cache has the first and the last byte of a read. Then it most likely has
// the bytes between them.
bool is_cached(int fd, const struct stat& status, std::size_t size) noexcept {
  const off_t begin = ::lseek(fd, 0, SEEK_CUR);
  if (begin < 0) return true;
  off_t end = begin + static_cast<off_t>(size);
  if (S_ISREG(status.st_mode)) end = std::min(end, status.st_size);
  for (const off_t offset : {begin, end - 1}) {
    char byte = 0;
    const iovec part{&byte, 1};
    if (offset >= 0 && ::preadv2(fd, &part, 1, offset, RWF_NOWAIT) < 0 && errno == EAGAIN)
      return false;
  }
  return true;
}

// Makes one read, because other callers may read from the same position.
ssize_t read_file(FiberState& state, const Call& call, int fd, const iovec* parts, int count,
                  const struct stat& status) {
  if (is_cached(fd, status, length_of(parts, static_cast<std::size_t>(count))))
    return real_readv(fd, parts, count);
  return on_helper(state, call, [=] { return real_readv(fd, parts, count); });
}

ssize_t read_parts(FiberState& state, const Call& call, int fd, const iovec* parts, int count) {
  if (count <= 0 || count > IOV_MAX || length_of(parts, static_cast<std::size_t>(count)) == 0)
    return real_readv(fd, parts, count);
  const auto plain = [=](int descriptor) { return real_readv(descriptor, parts, count); };
  msghdr message = message_of(parts, static_cast<std::size_t>(count));
  const ssize_t received = receive(
      state, call, fd,
      [&](int descriptor) { return real_recvmsg(descriptor, &message, MSG_DONTWAIT); }, plain,
      request_of(message, 0));
  if (received >= 0 || errno != ENOTSOCK) return received;
  struct stat status {};
  if (::fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)))
    return read_file(state, call, fd, parts, count, status);
  return receive(
      state, call, fd,
      [=](int descriptor) { return read_without_waiting(descriptor, parts, count); }, plain);
}

}  // namespace

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

WEFT_POSIX_EXPORT ssize_t recv(int fd, void* buffer, size_t size, int flags) {
  FiberState* state = current_scope();
  if (state == nullptr || (flags & kNeverWaits) != 0)
    return note_attempt(state, fd, real_recv(fd, buffer, size, flags));
  const Call call{"recv", __builtin_return_address(0)};
  if ((flags & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL && size > 0)
    return receive_all(*state, call, fd, buffer, size, flags);
  const iovec whole{buffer, size};
  msghdr message = message_of(&whole, 1);
  return receive(
      *state, call, fd,
      [=](int place) { return real_recv(place, buffer, size, flags | MSG_DONTWAIT); },
      [=](int place) { return real_recv(place, buffer, size, flags); }, request_of(message, flags));
}

WEFT_POSIX_EXPORT ssize_t recvfrom(int fd, void* buffer, size_t size, int flags, sockaddr* address,
                                   socklen_t* length) {
  FiberState* state = (flags & kNeverWaits) != 0 ? nullptr : current_scope();
  if (state == nullptr) return real_recvfrom(fd, buffer, size, flags, address, length);
  const Call call{"recvfrom", __builtin_return_address(0)};
  if (address == nullptr && (flags & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL && size > 0)
    return receive_all(*state, call, fd, buffer, size, flags);
  const iovec whole{buffer, size};
  msghdr message = message_of(&whole, 1);
  const auto by_message = request_of(message, flags);
  return receive(
      *state, call, fd,
      [=](int place) {
        return real_recvfrom(place, buffer, size, flags | MSG_DONTWAIT, address, length);
      },
      [=](int place) { return real_recvfrom(place, buffer, size, flags, address, length); },
      [&](int place, const weft::Until& until) {
        if (address != nullptr && length == nullptr) return weft::detail::OneShot{};
        message.msg_name = address;
        message.msg_namelen = address == nullptr ? 0 : *length;
        const weft::detail::OneShot ended = by_message(place, until);
        const bool is_received = ended.end == weft::detail::OneShotEnd::done && ended.value >= 0;
        if (is_received && address != nullptr) *length = message.msg_namelen;
        return ended;
      });
}

WEFT_POSIX_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  FiberState* state = (flags & kNeverWaits) != 0 ? nullptr : current_scope();
  if (state == nullptr) return real_recvmsg(fd, message, flags);
  return receive(
      *state, {"recvmsg", __builtin_return_address(0)}, fd,
      [=](int place) { return real_recvmsg(place, message, flags | MSG_DONTWAIT); },
      [=](int place) { return real_recvmsg(place, message, flags); }, request_of(*message, flags));
}

// The fiber waits for the first message, and with MSG_WAITFORONE for no other. A helper thread
// makes a call that waits for several messages, or that has a time limit.
WEFT_POSIX_EXPORT int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags,
                               timespec* limit) {
  FiberState* state = (flags & kNeverWaits) != 0 ? nullptr : current_scope();
  if (state == nullptr) return real_recvmmsg(fd, messages, count, flags, limit);
  const Call call{"recvmmsg", __builtin_return_address(0)};
  const auto plain = [=](int place) { return real_recvmmsg(place, messages, count, flags, limit); };
  if (limit != nullptr || (count > 1 && (flags & MSG_WAITFORONE) == 0))
    return on_helper(*state, call, [=] { return plain(fd); });
  return static_cast<int>(receive(
      *state, call, fd,
      [=](int place) {
        return real_recvmmsg(place, messages, count, flags | MSG_DONTWAIT, nullptr);
      },
      plain));
}

WEFT_POSIX_EXPORT ssize_t read(int fd, void* buffer, size_t size) {
  FiberState* state = size == 0 ? nullptr : current_scope();
  if (state == nullptr) return real_read(fd, buffer, size);
  const iovec whole{buffer, size};
  return read_parts(*state, {"read", __builtin_return_address(0)}, fd, &whole, 1);
}

WEFT_POSIX_EXPORT ssize_t readv(int fd, const iovec* parts, int count) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_readv(fd, parts, count);
  return read_parts(*state, {"readv", __builtin_return_address(0)}, fd, parts, count);
}

// Programs compiled with _FORTIFY_SOURCE call these functions. If the buffer is too small, the C
// library's function ends the process.
WEFT_POSIX_EXPORT ssize_t __read_chk(int fd, void* buffer, size_t size, size_t room) {
  static constinit Real<ssize_t(int, void*, size_t, size_t)> real("__read_chk");
  return size > room ? real(fd, buffer, size, room) : ::read(fd, buffer, size);
}
WEFT_POSIX_EXPORT ssize_t __recv_chk(int fd, void* buffer, size_t size, size_t room, int flags) {
  static constinit Real<ssize_t(int, void*, size_t, size_t, int)> real("__recv_chk");
  return size > room ? real(fd, buffer, size, room, flags) : ::recv(fd, buffer, size, flags);
}
WEFT_POSIX_EXPORT ssize_t __recvfrom_chk(int fd, void* buffer, size_t size, size_t room, int flags,
                                         sockaddr* address, socklen_t* length) {
  static constinit Real<ssize_t(int, void*, size_t, size_t, int, sockaddr*, socklen_t*)> real(
      "__recvfrom_chk");
  return size > room ? real(fd, buffer, size, room, flags, address, length)
                     : ::recvfrom(fd, buffer, size, flags, address, length);
}

}  // extern "C"

WEFT_POSIX_HOOK(recv);
WEFT_POSIX_HOOK(recvfrom);
WEFT_POSIX_HOOK(recvmsg);
WEFT_POSIX_HOOK(recvmmsg);
WEFT_POSIX_HOOK(read);
WEFT_POSIX_HOOK(readv);

namespace weft::posix {

std::span<const Hook> receive_hooks() noexcept {
  static const std::array hooks{WEFT_POSIX_ENTRY(recv),    WEFT_POSIX_ENTRY(recvfrom),
                                WEFT_POSIX_ENTRY(recvmsg), WEFT_POSIX_ENTRY(recvmmsg),
                                WEFT_POSIX_ENTRY(read),    WEFT_POSIX_ENTRY(readv)};
  return hooks;
}

}  // namespace weft::posix
