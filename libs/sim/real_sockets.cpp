#include "libs/sim/real_sockets.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <weft/detail/atomic.hpp>

// The thread sanitizer's function, which orders threads by their sockets. Null in other builds.
extern "C" [[gnu::weak]] int __interceptor_socket(int family, int type, int protocol) noexcept;

namespace weft::sim {

namespace {

using Refuses = bool (*)(int family) noexcept;

// Relaxed: a hook decides by the calling thread.
constinit detail::Atomic<Refuses> socket_hook{nullptr};

bool is_socket_refused(int family) noexcept {
  const Refuses refuses = socket_hook.load(detail::relaxed);
  return refuses != nullptr && refuses(family);
}

}  // namespace

void set_socket_hook(Refuses refuses) noexcept { socket_hook.store(refuses, detail::relaxed); }

}  // namespace weft::sim

// It is not weak: the sanitizer's own function is weak, and may be linked first.
extern "C" int socket(int family, int type, int protocol) noexcept {
  if (weft::sim::is_socket_refused(family)) {
    errno = ENOSYS;
    return -1;
  }
  if (&__interceptor_socket != nullptr) return __interceptor_socket(family, type, protocol);
  return static_cast<int>(::syscall(SYS_socket, family, type, protocol));
}
