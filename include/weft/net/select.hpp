// Sockets as cases of a select(). Cases are made by the caller of the select(), which alone parks
// and synchronizes; making one throws what moving its handler throws.
#pragma once

#include <concepts>
#include <utility>
#include <weft/detail/io_case.hpp>
#include <weft/detail/select_case.hpp>
#include <weft/net/socket.hpp>

namespace weft::net {

// A stream, a listener, a socket for datagrams: what has a Socket inside.
template <class T>
concept HasSocket = requires(const T& owner) {
  { owner.socket() } -> std::same_as<const Socket&>;
};

// Cases of a select(). A socket is readable, or writable, when a call that reads, or writes, would
// return at once: with bytes, the end of the stream, an error, or because the socket is closed or
// its deadline has passed. A listener is readable when accept() would.
// Waiting counts as a call in that direction: no other caller may read, or write, meanwhile, and a
// select names each direction of a socket once. The handler, which is called when all waiting is
// over, may.
template <HasSocket Owner, std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_readable(const Owner& owner, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(owner.socket().handle(), detail::IoCase::Direction::read,
                                        std::move(handler));
}
// Works as on_readable() does, for writing.
template <HasSocket Owner, std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_writable(const Owner& owner, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(owner.socket().handle(), detail::IoCase::Direction::write,
                                        std::move(handler));
}

}  // namespace weft::net
