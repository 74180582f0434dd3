// A helper thread makes the calls that have no descriptor to wait on. The exception is waitpid(),
// which waits on a descriptor.
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "libs/posix/hooks.hpp"
#include "libs/posix/waiting.hpp"

namespace weft::posix {

namespace {

constinit Real<decltype(::getaddrinfo)> real_getaddrinfo("getaddrinfo");
constinit Real<decltype(::getnameinfo)> real_getnameinfo("getnameinfo");
constinit Real<decltype(::waitpid)> real_waitpid("waitpid");
constinit Real<decltype(::fsync)> real_fsync("fsync");
constinit Real<decltype(::fdatasync)> real_fdatasync("fdatasync");

// Returns whether the name needs no lookup.
bool is_numeric(const char* node, const addrinfo* hints) noexcept {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return node == nullptr || (hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0) ||
         ::inet_pton(AF_INET, node, address.data()) == 1 ||
         ::inet_pton(AF_INET6, node, address.data()) == 1;
}

// Parks until the child has ended. Returns false on systems without pidfd_open().
bool wait_for_end(FiberState& state, pid_t child, Outcome& outcome) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  if (fd < 0) return false;
  Place place(state, fd);
  outcome = place.wait(io::Ready::read, Deadline::never());
  ::close(fd);
  return outcome != Outcome::refused;
}

}  // namespace

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

// Weak: a static C library's freeaddrinfo() comes with a getaddrinfo(), which would be a second
// definition. Such a program is refused at its first intercepted call.
WEFT_POSIX_WEAK WEFT_POSIX_EXPORT int getaddrinfo(const char* node, const char* service,
                                                  const addrinfo* hints, addrinfo** found) {
  FiberState* state = is_numeric(node, hints) ? nullptr : current_scope();
  if (state == nullptr) return real_getaddrinfo(node, service, hints, found);
  return on_helper(*state, {"getaddrinfo", __builtin_return_address(0)},
                   [=] { return real_getaddrinfo(node, service, hints, found); });
}

WEFT_POSIX_EXPORT int getnameinfo(const sockaddr* address, socklen_t length, char* host,
                                  socklen_t host_room, char* service, socklen_t service_room,
                                  int flags) {
  FiberState* state = (flags & NI_NUMERICHOST) != 0 ? nullptr : current_scope();
  const auto plain = [=] {
    return real_getnameinfo(address, length, host, host_room, service, service_room, flags);
  };
  if (state == nullptr) return plain();
  return on_helper(*state, {"getnameinfo", __builtin_return_address(0)}, plain);
}

WEFT_POSIX_EXPORT pid_t waitpid(pid_t child, int* status, int options) {
  FiberState* state = (options & WNOHANG) != 0 ? nullptr : current_scope();
  if (state == nullptr) return real_waitpid(child, status, options);
  const Call call{"waitpid", __builtin_return_address(0)};
  const auto plain = [=] { return real_waitpid(child, status, options); };
  if (child <= 0 || options != 0 || reason_not_to_park() != nullptr)
    return on_helper(*state, call, plain);
  for (;;) {
    const pid_t ended = real_waitpid(child, status, options | WNOHANG);
    if (ended != 0) return ended;
    Outcome outcome = Outcome::refused;
    if (!wait_for_end(*state, child, outcome)) return on_helper(*state, call, plain);
    if (outcome != Outcome::ready) return fail(error_of(outcome, ETIMEDOUT));
  }
}

WEFT_POSIX_EXPORT int fsync(int fd) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_fsync(fd);
  return on_helper(*state, {"fsync", __builtin_return_address(0)}, [=] { return real_fsync(fd); });
}

WEFT_POSIX_EXPORT int fdatasync(int fd) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_fdatasync(fd);
  return on_helper(*state, {"fdatasync", __builtin_return_address(0)},
                   [=] { return real_fdatasync(fd); });
}

}  // extern "C"

WEFT_POSIX_HOOK(getaddrinfo);
WEFT_POSIX_HOOK(getnameinfo);
WEFT_POSIX_HOOK(waitpid);
WEFT_POSIX_HOOK(fsync);
WEFT_POSIX_HOOK(fdatasync);

namespace weft::posix {

std::span<const Hook> helper_hooks() noexcept {
  static const std::array hooks{WEFT_POSIX_ENTRY(getaddrinfo), WEFT_POSIX_ENTRY(getnameinfo),
                                WEFT_POSIX_ENTRY(waitpid), WEFT_POSIX_ENTRY(fsync),
                                WEFT_POSIX_ENTRY(fdatasync)};
  return hooks;
}

}  // namespace weft::posix
