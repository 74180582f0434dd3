// Calls that begin a connection: connect and accept.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <mutex>

#include "libs/posix/hooks.hpp"
#include "libs/posix/waiting.hpp"

namespace weft::posix {

namespace {

constinit Real<decltype(::connect)> real_connect("connect");
constinit Real<decltype(::accept)> real_accept("accept");
constinit Real<decltype(::accept4)> real_accept4("accept4");

// No flag makes one connect() non-blocking, so the socket is non-blocking during the call.
int connect_without_waiting(int fd, const sockaddr* address, socklen_t length, int flags) {
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  const int result = real_connect(fd, address, length);
  const int error = errno;
  ::fcntl(fd, F_SETFL, flags);
  errno = error;
  return result;
}

// Waits for a connection that is being established. The second connect() returns the result and
// records it in the socket; it starts no other connection.
int wait_for_connection(FiberState& state, const Call& call, int fd, const sockaddr* address,
                        socklen_t length) {
  Place place(state, fd);
  const Outcome outcome = place.wait(io::Ready::write, place.limit_by(SO_SNDTIMEO));
  if (outcome == Outcome::ready) return real_connect(place.descriptor(), address, length);
  if (outcome != Outcome::refused) return fail(error_of(outcome, EINPROGRESS));
  const BlockedCall blocked(call, "no descriptor to wait on");
  return real_connect(fd, address, length);
}

// Guards a readiness check and the accept after it. A caller that accepted in between would make
// the accept block. Listeners share a few locks by inode number, which is the same for duplicates.
std::mutex& lock_of(int fd) noexcept {
  static constinit std::array<std::mutex, 16> locks;
  struct stat status {};
  return locks[::fstat(fd, &status) == 0 ? status.st_ino % locks.size() : 0];
}

template <class Accept>
int accept_by(FiberState& state, const Call& call, int fd, Accept accept) {
  Place place(state, fd);
  const auto attempt = [&](int descriptor) -> ssize_t {
    const std::lock_guard lock(lock_of(descriptor));
    const int refused = check_ready(descriptor, POLLIN);
    return refused != 0 ? refused : accept(descriptor);
  };
  return static_cast<int>(until_done(place, call, io::Ready::read, SO_RCVTIMEO, attempt, accept));
}

}  // namespace

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

WEFT_POSIX_EXPORT int connect(int fd, const sockaddr* address, socklen_t length) {
  FiberState* state = current_scope();
  const int flags = state == nullptr ? -1 : ::fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) != 0) return real_connect(fd, address, length);
  const Call call{"connect", __builtin_return_address(0)};
  const auto plain = [=] { return real_connect(fd, address, length); };
  if (const auto made = made_in_place(call, plain)) return *made;
  const int result = connect_without_waiting(fd, address, length, flags);
  if (result == 0) return 0;
  // The peer is a Unix socket whose backlog is full.
  if (errno == EAGAIN) return on_helper(*state, call, plain);
  if (errno != EINPROGRESS && errno != EALREADY) return result;
  return wait_for_connection(*state, call, fd, address, length);
}

WEFT_POSIX_EXPORT int accept(int fd, sockaddr* address, socklen_t* length) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_accept(fd, address, length);
  return accept_by(*state, {"accept", __builtin_return_address(0)}, fd,
                   [=](int place) { return real_accept(place, address, length); });
}

WEFT_POSIX_EXPORT int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_accept4(fd, address, length, flags);
  return accept_by(*state, {"accept4", __builtin_return_address(0)}, fd,
                   [=](int place) { return real_accept4(place, address, length, flags); });
}

}  // extern "C"

WEFT_POSIX_HOOK(connect);
WEFT_POSIX_HOOK(accept);
WEFT_POSIX_HOOK(accept4);

namespace weft::posix {

std::span<const Hook> connection_hooks() noexcept {
  static const std::array hooks{WEFT_POSIX_ENTRY(connect), WEFT_POSIX_ENTRY(accept),
                                WEFT_POSIX_ENTRY(accept4)};
  return hooks;
}

}  // namespace weft::posix
