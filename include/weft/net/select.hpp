// Makes select cases for sockets.
// Context, Throws: the same as for on_stop().
#pragma once

#include <concepts>
#include <utility>
#include <weft/detail/io_case.hpp>
#include <weft/detail/select_case.hpp>
#include <weft/net/socket.hpp>

namespace weft::net {

// Accepts a type that contains a Socket: a stream, a listener, a datagram socket.
template <class T>
concept HasSocket = requires(const T& owner) {
  { owner.socket() } -> std::same_as<const Socket&>;
};

// Makes a select case that is ready when a read would return at once, either with bytes or with an
// error, for example after the read deadline. A listener is ready when accept() would return. The
// wait counts as a read (or write): no other caller may read (or write) meanwhile, and a select may
// have only one per socket and direction. The handler runs after the wait, and may read (or write).
template <HasSocket Owner, std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_readable(const Owner& owner, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(owner.socket().handle(), detail::IoCase::Direction::read,
                                        std::move(handler));
}
// Makes a select case that is ready when a write would return at once.
template <HasSocket Owner, std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_writable(const Owner& owner, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(owner.socket().handle(), detail::IoCase::Direction::write,
                                        std::move(handler));
}

}  // namespace weft::net
