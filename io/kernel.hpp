// A simulation's sockets and files (weft/sim.hpp), in the place of the system's.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/simulated.hpp>

#include "io/attempt.hpp"
#include "io/file_kernel.hpp"

namespace weft::io {

// The system calls about sockets, as net/system_calls.hpp makes them: non-blocking, with errors as
// values. The simulation's worker makes them.
class Kernel {
 public:
  Kernel() = default;
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  [[nodiscard]] virtual CallResult open_socket(int family, int type) noexcept = 0;
  [[nodiscard]] virtual CallResult open_pair(std::array<int, 2>& ends) noexcept = 0;
  [[nodiscard]] virtual CallResult bind(int descriptor, const sockaddr* address) noexcept = 0;
  [[nodiscard]] virtual CallResult listen(int descriptor, int backlog) noexcept = 0;
  [[nodiscard]] virtual CallResult accept(int descriptor) noexcept = 0;
  [[nodiscard]] virtual CallResult connect(int descriptor, const sockaddr* address) noexcept = 0;
  // A stream's bytes, or one datagram.
  [[nodiscard]] virtual CallResult receive(int descriptor, msghdr& message) noexcept = 0;
  [[nodiscard]] virtual CallResult send(int descriptor, const msghdr& message) noexcept = 0;
  [[nodiscard]] virtual CallResult shut_down(int descriptor, int how) noexcept = 0;
  [[nodiscard]] virtual CallResult set_option(int descriptor, int level, int name,
                                              std::span<const std::byte> value) noexcept = 0;
  [[nodiscard]] virtual CallResult get_option(int descriptor, int level, int name,
                                              std::span<std::byte> value) noexcept = 0;
  [[nodiscard]] virtual CallResult name_of(int descriptor, sockaddr_storage& name,
                                           socklen_t& size) noexcept = 0;
  [[nodiscard]] virtual CallResult peer_of(int descriptor, sockaddr_storage& name,
                                           socklen_t& size) noexcept = 0;
  // Which of poll()'s `events` are so now.
  [[nodiscard]] virtual short ready_now(int descriptor, short events) noexcept = 0;
  // Whether a connected stream has been ended or reset by its peer.
  [[nodiscard]] virtual bool is_gone(int descriptor) noexcept = 0;
  virtual void close(int descriptor) noexcept = 0;

  [[nodiscard]] virtual FileKernel& files() noexcept = 0;
  // Whether the descriptor is one of the simulation's; the others are the system's.
  [[nodiscard]] virtual bool owns(int descriptor) const noexcept = 0;
  // The IPv4 addresses of a host, in the network's order of bytes; none: there is no such host.
  [[nodiscard]] virtual std::vector<std::uint32_t> look_up(const std::string& host) = 0;
  // The simulation calls it, and has one at a time. Null takes it away.
  static void install(Kernel* kernel) noexcept;
  // The one of the calling thread, which is simulated; never inlined.
  [[nodiscard, gnu::noinline]] static Kernel* here() noexcept;
};

// Null for a caller that has the system's sockets. Any thread may call it.
[[nodiscard, gnu::always_inline]] inline Kernel* simulated_kernel() noexcept {
  return detail::simulated() == nullptr ? nullptr : Kernel::here();
}
// The same for calls about a descriptor that may be the system's, as a file's is.
[[nodiscard, gnu::always_inline]] inline Kernel* simulated_kernel(int descriptor) noexcept {
  Kernel* kernel = simulated_kernel();
  return kernel != nullptr && kernel->owns(descriptor) ? kernel : nullptr;
}

// Null for a caller that has the system's files. Any thread may call it.
[[nodiscard, gnu::always_inline]] inline FileKernel* simulated_files() noexcept {
  Kernel* kernel = simulated_kernel();
  return kernel == nullptr ? nullptr : &kernel->files();
}
// The same for calls about an open file, which may be the system's.
[[nodiscard, gnu::always_inline]] inline FileKernel* simulated_files(int file) noexcept {
  Kernel* kernel = simulated_kernel(file);
  return kernel == nullptr ? nullptr : &kernel->files();
}

}  // namespace weft::io
