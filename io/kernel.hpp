// A simulation's sockets and files (weft/sim.hpp), which replace the system's.
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

// Replaces the system calls of net/system_calls.hpp. These calls do not block, and return errors as
// values. Only the simulation's worker makes them.
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
  // Receives bytes of a stream, or one datagram.
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
  // Returns which of poll()'s `events` hold now.
  [[nodiscard]] virtual short ready_now(int descriptor, short events) noexcept = 0;
  // Returns whether the peer has ended or reset a connected stream.
  [[nodiscard]] virtual bool is_gone(int descriptor) noexcept = 0;
  virtual void close(int descriptor) noexcept = 0;

  [[nodiscard]] virtual FileKernel& files() noexcept = 0;
  // Returns whether the descriptor is the simulation's; other descriptors are the system's.
  [[nodiscard]] virtual bool owns(int descriptor) const noexcept = 0;
  // Fills in the IPv4 addresses of a host, in network byte order; none if there is no such host.
  // Returns 0, or an error of getaddrinfo().
  [[nodiscard]] virtual int look_up(const std::string& host,
                                    std::vector<std::uint32_t>& addresses) = 0;
  // The simulation installs its kernel; only one is installed at a time. Null removes it.
  static void install(Kernel* kernel) noexcept;
  // Returns the simulated kernel of the calling thread. It is never inlined.
  [[nodiscard, gnu::noinline]] static Kernel* here() noexcept;
};

// Returns the simulation's kernel, or null if the caller uses the system's sockets. Any thread may
// call it.
[[nodiscard, gnu::always_inline]] inline Kernel* simulated_kernel() noexcept {
  return detail::simulated() == nullptr ? nullptr : Kernel::here();
}
// Returns the kernel that owns the descriptor, or null if the descriptor is the system's.
[[nodiscard, gnu::always_inline]] inline Kernel* simulated_kernel(int descriptor) noexcept {
  Kernel* kernel = simulated_kernel();
  return kernel != nullptr && kernel->owns(descriptor) ? kernel : nullptr;
}

// Returns the simulation's files, or null if the caller uses the system's. Any thread may call it.
[[nodiscard, gnu::always_inline]] inline FileKernel* simulated_files() noexcept {
  Kernel* kernel = simulated_kernel();
  return kernel == nullptr ? nullptr : &kernel->files();
}
// Returns the simulation's files if the open file belongs to the simulation, otherwise null.
[[nodiscard, gnu::always_inline]] inline FileKernel* simulated_files(int file) noexcept {
  Kernel* kernel = simulated_kernel(file);
  return kernel == nullptr ? nullptr : &kernel->files();
}

}  // namespace weft::io
