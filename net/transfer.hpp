// The parts of io that sockets use.
#pragma once

#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>

#include "io/attempt.hpp"
#include "net/system_calls.hpp"

namespace weft::net {

using io::attempt_until;
using io::find_poller;
using io::to_error;

// Registers a new descriptor with the poller; closes it if that fails.
Result<Socket> adopt(io::Poller& poller, int descriptor) noexcept;
// Does the same for a socket of another library, with the caller's poller. It makes the socket
// non-blocking; on failure the caller keeps the socket.
Result<Socket> adopt_foreign(int descriptor);
// Registers a new socket that `prepare`, a function that takes the descriptor and returns a
// CallResult, has prepared.
template <class Prepare>
Result<Socket> make_socket(int family, int type, Prepare prepare) {
  const auto [poller, no_poller] = find_poller();
  if (no_poller) return {.error = no_poller};
  const CallResult opened = open_socket(family, type);
  if (opened.error != 0) return {.error = opened.code()};
  const int descriptor = static_cast<int>(opened.value);
  const CallResult prepared = prepare(descriptor);
  if (prepared.error != 0) {
    close_descriptor(descriptor);
    return {.error = prepared.code()};
  }
  return adopt(*poller, descriptor);
}

template <class Value>
std::error_code set_option_of(const Socket& socket, int level, int name,
                              const Value& value) noexcept {
  const io::IoUse use(socket.handle());
  if (!use) return Errc::closed;
  return set_option(use->descriptor(), level, name, std::as_bytes(std::span(&value, 1))).code();
}

// Returns the address of one end; `ask` is name_of or peer_of.
template <class Where>
Result<Where> address_of(const Socket& socket, Result<SystemName> (*ask)(int) noexcept) noexcept {
  const io::IoUse use(socket.handle());
  if (!use) return {.error = Errc::closed};
  const auto [name, error] = ask(use->descriptor());
  if (error) return {.error = error};
  return Where::from_system(&name.data, name.size);
}

// Writes once by `put`, a function that returns a CallResult. The caller has entered the handle.
template <class Put>
Result<std::size_t> write_with(io::IoHandle& handle, const Until& until, Put put) noexcept {
  // Earlier edges are not dropped first, because almost every event brings one. A stale edge costs
  // an attempt in the rare case that the socket is full.
  const auto [count, error] =
      attempt_until(handle.write(), detail::WaitReason::writable, until, true, put);
  return {.value = static_cast<std::size_t>(count), .error = error};
}

}  // namespace weft::net
