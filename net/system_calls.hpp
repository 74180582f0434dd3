// The system calls of sockets, with errors as values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <weft/net/address.hpp>

#include "io/attempt.hpp"

namespace weft::net {

using io::CallResult;
using io::close_descriptor;
using io::is_readable;
using io::is_writable;
using io::set_non_blocking;

// None of these is ever inlined: a compiler may remember the address of errno, and the caller may
// be on another thread after it has waited. Calls that a signal interrupted are repeated.
[[nodiscard]] CallResult open_tcp(const Address& address) noexcept;
[[nodiscard]] CallResult bind_to(int descriptor, const Address& address) noexcept;
[[nodiscard]] CallResult start_listening(int descriptor, int backlog) noexcept;
[[nodiscard]] CallResult accept_from(int descriptor) noexcept;
[[nodiscard]] CallResult connect_to(int descriptor, const Address& address) noexcept;
[[nodiscard]] CallResult receive(int descriptor, std::span<std::byte> buffer) noexcept;
[[nodiscard]] CallResult send(int descriptor, std::span<const std::byte> data) noexcept;
[[nodiscard]] CallResult shut_down(int descriptor, int how) noexcept;
[[nodiscard]] CallResult set_option(int descriptor, int level, int name, int value) noexcept;
Result<Address> name_of(int descriptor) noexcept;
Result<Address> peer_of(int descriptor) noexcept;

}  // namespace weft::net
