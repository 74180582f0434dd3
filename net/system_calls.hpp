// The system calls of sockets, with errors as values.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <weft/net/result.hpp>

#include "io/attempt.hpp"

namespace weft::net {

using io::CallResult;
using io::close_descriptor;
using io::is_readable;
using io::is_writable;
using io::set_non_blocking;

// A socket address in the system's form, of any family.
struct SystemAddress {
  const void* data = nullptr;
  std::size_t size = 0;

  [[nodiscard]] int family() const noexcept;
};
template <class Where>
[[nodiscard]] SystemAddress system_form(const Where& address) noexcept {
  return {address.system_data(), address.system_size()};
}
// An address that the system fills in.
struct SystemName {
  sockaddr_storage data{};
  socklen_t size = sizeof data;
};

// No function here that reads errno is ever inlined: a compiler may keep the address of errno, and
// the caller may be on another thread after a wait. Interrupted calls are repeated. Sockets are
// created non-blocking and close-on-exec.
[[nodiscard]] CallResult open_socket(int family, int type) noexcept;
[[nodiscard]] CallResult open_pair(std::array<int, 2>& ends) noexcept;
[[nodiscard]] CallResult bind_to(int descriptor, SystemAddress address) noexcept;
[[nodiscard]] CallResult start_listening(int descriptor, int backlog) noexcept;
[[nodiscard]] CallResult accept_from(int descriptor) noexcept;
[[nodiscard]] CallResult connect_to(int descriptor, SystemAddress address) noexcept;
[[nodiscard]] CallResult receive(int descriptor, std::span<std::byte> buffer) noexcept;
[[nodiscard]] CallResult send(int descriptor, std::span<const std::byte> data) noexcept;
[[nodiscard]] CallResult receive_message(int descriptor, msghdr& message) noexcept;
[[nodiscard]] CallResult send_message(int descriptor, const msghdr& message) noexcept;
// Receive the available messages, or send as many as fit, and return their number.
[[nodiscard]] CallResult receive_messages(int descriptor, std::span<mmsghdr> messages) noexcept;
[[nodiscard]] CallResult send_messages(int descriptor, std::span<mmsghdr> messages) noexcept;
// Sends from the file at `offset`.
[[nodiscard]] CallResult send_from_file(int descriptor, int file, std::uint64_t offset,
                                        std::size_t size) noexcept;
[[nodiscard]] CallResult shut_down(int descriptor, int how) noexcept;
[[nodiscard]] CallResult set_option(int descriptor, int level, int name,
                                    std::span<const std::byte> value) noexcept;
[[nodiscard]] CallResult set_option(int descriptor, int level, int name, int value) noexcept;
[[nodiscard]] CallResult get_option(int descriptor, int level, int name,
                                    std::span<std::byte> value) noexcept;
Result<SystemName> name_of(int descriptor) noexcept;
Result<SystemName> peer_of(int descriptor) noexcept;

}  // namespace weft::net
