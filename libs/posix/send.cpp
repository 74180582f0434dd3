// Calls that write to sockets and pipes. A write to a file goes to the page cache, in place.
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <new>

#include "libs/posix/hooks.hpp"
#include "libs/posix/waiting.hpp"

namespace weft::posix {

namespace {

constinit Real<decltype(::send)> real_send("send");
constinit Real<decltype(::sendto)> real_sendto("sendto");
constinit Real<decltype(::sendmsg)> real_sendmsg("sendmsg");
constinit Real<decltype(::sendmmsg)> real_sendmmsg("sendmmsg");
constinit Real<decltype(::write)> real_write("write");
constinit Real<decltype(::writev)> real_writev("writev");

// The unwritten parts of a message. A stream without room for the whole message takes a part of it.
// Only then does this class copy the list of parts and shorten the copy.
class Rest {
 public:
  Rest(const iovec* parts, std::size_t count) noexcept
      : parts_(parts), count_(count), left_(length_of(parts, count)) {}
  // Returns false if there is no memory for the copy.
  [[nodiscard]] bool take(std::size_t written) {
    left_ -= written;
    done_ += static_cast<ssize_t>(written);
    if (left_ == 0) return true;
    if (copy_.empty()) {
      try {
        copy_.assign(parts_, parts_ + count_);
      } catch (const std::bad_alloc&) {
        return false;
      }
      parts_ = copy_.data();
    }
    auto* first = copy_.data() + (copy_.size() - count_);
    while (written >= first->iov_len) {
      written -= first->iov_len;
      ++first;
      --count_;
    }
    first->iov_base = static_cast<char*>(first->iov_base) + written;
    first->iov_len -= written;
    parts_ = first;
    return true;
  }
  [[nodiscard]] iovec* parts() const noexcept { return const_cast<iovec*>(parts_); }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t left() const noexcept { return left_; }
  [[nodiscard]] ssize_t done() const noexcept { return done_; }

 private:
  const iovec* parts_;
  std::size_t count_;
  std::size_t left_;
  ssize_t done_ = 0;
  std::vector<iovec> copy_;
};

// Repeats `some`, which writes a part of the rest and parks if necessary, until a thread's call
// would return. The argument of `some` is true for the first call only.
template <class Some>
ssize_t write_all(Place& place, Rest& rest, Some some) {
  for (bool is_first = true;; is_first = false) {
    const ssize_t written = some(is_first);
    if (written < 0) return is_first ? written : rest.done();
    if (!rest.take(static_cast<std::size_t>(written)) || rest.left() == 0 || written == 0)
      return rest.done();
    if (place.is_non_blocking()) return rest.done();
  }
}

ssize_t send_message(FiberState& state, const Call& call, int fd, const msghdr& whole, int flags) {
  Place place(state, fd);
  Rest rest(whole.msg_iov, whole.msg_iovlen);
  const ssize_t sent = write_all(place, rest, [&](bool is_first) {
    msghdr message = whole;
    message.msg_iov = rest.parts();
    message.msg_iovlen = rest.count();
    int how = flags;
    if (!is_first) {
      message.msg_control = nullptr;
      message.msg_controllen = 0;
      // After a partial send, a call on a thread returns the count and raises no signal.
      how |= MSG_NOSIGNAL;
    }
    const auto attempt = [&](int descriptor) {
      if (message.msg_iovlen != 1 || message.msg_control != nullptr)
        return real_sendmsg(descriptor, &message, how | MSG_DONTWAIT);
      // The kernel reads no message and no list of parts.
      return real_sendto(descriptor, message.msg_iov->iov_base, message.msg_iov->iov_len,
                         how | MSG_DONTWAIT, static_cast<const sockaddr*>(message.msg_name),
                         message.msg_namelen);
    };
    return until_done(place, call, io::Ready::write, SO_SNDTIMEO, attempt,
                      [&](int descriptor) { return real_sendmsg(descriptor, &message, how); });
  });
  state.asked = sent > 0 ? fd : -1;
  return sent;
}

ssize_t send_buffer(FiberState& state, const Call& call, int fd, const void* buffer,
                    std::size_t size, int flags, const sockaddr* address, socklen_t length) {
  iovec whole{const_cast<void*>(buffer), size};
  msghdr message{};
  message.msg_name = const_cast<sockaddr*>(address);
  message.msg_namelen = address == nullptr ? 0 : length;
  message.msg_iov = &whole;
  message.msg_iovlen = 1;
  return send_message(state, call, fd, message, flags);
}

// Used where pwritev2() does not support RWF_NOWAIT. A pipe that has room takes PIPE_BUF at once.
ssize_t write_if_ready(int fd, const Rest& rest) {
  if (const int refused = check_ready(fd, POLLOUT); refused != 0) return refused;
  const iovec& first = *rest.parts();
  if (rest.left() <= PIPE_BUF) return real_writev(fd, rest.parts(), static_cast<int>(rest.count()));
  return real_write(fd, first.iov_base, std::min<std::size_t>(first.iov_len, PIPE_BUF));
}

ssize_t write_stream(FiberState& state, const Call& call, int fd, const iovec* parts, int count) {
  Place place(state, fd);
  Rest rest(parts, static_cast<std::size_t>(count));
  return write_all(place, rest, [&](bool) {
    const auto plain = [&](int descriptor) {
      return real_writev(descriptor, rest.parts(), static_cast<int>(rest.count()));
    };
    const auto attempt = [&](int descriptor) -> ssize_t {
      const ssize_t written =
          ::pwritev2(descriptor, rest.parts(), static_cast<int>(rest.count()), -1, RWF_NOWAIT);
      if (written >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS)) return written;
      return write_if_ready(descriptor, rest);
    };
    return until_done(place, call, io::Ready::write, SO_SNDTIMEO, attempt, plain);
  });
}

ssize_t write_parts(FiberState& state, const Call& call, int fd, const iovec* parts, int count) {
  if (count <= 0 || count > IOV_MAX || length_of(parts, static_cast<std::size_t>(count)) == 0)
    return real_writev(fd, parts, count);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = static_cast<std::size_t>(count);
  const ssize_t sent = send_message(state, call, fd, message, 0);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  struct stat status {};
  if (::fstat(fd, &status) != 0 || S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) ||
      S_ISDIR(status.st_mode))
    return real_writev(fd, parts, count);
  return write_stream(state, call, fd, parts, count);
}

}  // namespace

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

WEFT_POSIX_EXPORT ssize_t send(int fd, const void* buffer, size_t size, int flags) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_send(fd, buffer, size, flags);
  if ((flags & MSG_DONTWAIT) != 0) {
    const ssize_t sent = real_send(fd, buffer, size, flags);
    state->asked = sent > 0 ? fd : -1;
    return sent;
  }
  return send_buffer(*state, {"send", __builtin_return_address(0)}, fd, buffer, size, flags,
                     nullptr, 0);
}

WEFT_POSIX_EXPORT ssize_t sendto(int fd, const void* buffer, size_t size, int flags,
                                 const sockaddr* address, socklen_t length) {
  FiberState* state = (flags & MSG_DONTWAIT) != 0 ? nullptr : current_scope();
  if (state == nullptr) return real_sendto(fd, buffer, size, flags, address, length);
  return send_buffer(*state, {"sendto", __builtin_return_address(0)}, fd, buffer, size, flags,
                     address, length);
}

WEFT_POSIX_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  FiberState* state = (flags & MSG_DONTWAIT) != 0 ? nullptr : current_scope();
  if (state == nullptr) return real_sendmsg(fd, message, flags);
  return send_message(*state, {"sendmsg", __builtin_return_address(0)}, fd, *message, flags);
}

WEFT_POSIX_EXPORT int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  FiberState* state = (flags & MSG_DONTWAIT) != 0 ? nullptr : current_scope();
  if (state == nullptr) return real_sendmmsg(fd, messages, count, flags);
  const Call call{"sendmmsg", __builtin_return_address(0)};
  unsigned sent = 0;
  for (; sent < count; ++sent) {
    const ssize_t size = send_message(*state, call, fd, messages[sent].msg_hdr, flags);
    if (size < 0) return sent > 0 ? static_cast<int>(sent) : -1;
    messages[sent].msg_len = static_cast<unsigned>(size);
  }
  return static_cast<int>(sent);
}

WEFT_POSIX_EXPORT ssize_t write(int fd, const void* buffer, size_t size) {
  FiberState* state = size == 0 ? nullptr : current_scope();
  if (state == nullptr) return real_write(fd, buffer, size);
  const iovec whole{const_cast<void*>(buffer), size};
  return write_parts(*state, {"write", __builtin_return_address(0)}, fd, &whole, 1);
}

WEFT_POSIX_EXPORT ssize_t writev(int fd, const iovec* parts, int count) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_writev(fd, parts, count);
  return write_parts(*state, {"writev", __builtin_return_address(0)}, fd, parts, count);
}

}  // extern "C"

WEFT_POSIX_HOOK(send);
WEFT_POSIX_HOOK(sendto);
WEFT_POSIX_HOOK(sendmsg);
WEFT_POSIX_HOOK(sendmmsg);
WEFT_POSIX_HOOK(write);
WEFT_POSIX_HOOK(writev);

namespace weft::posix {

std::span<const Hook> send_hooks() noexcept {
  static const std::array hooks{WEFT_POSIX_ENTRY(send),    WEFT_POSIX_ENTRY(sendto),
                                WEFT_POSIX_ENTRY(sendmsg), WEFT_POSIX_ENTRY(sendmmsg),
                                WEFT_POSIX_ENTRY(write),   WEFT_POSIX_ENTRY(writev)};
  return hooks;
}

}  // namespace weft::posix
