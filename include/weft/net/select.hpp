// Sockets as cases of a select().
#pragma once

#include <concepts>
#include <utility>
#include <weft/detail/io_case.hpp>
#include <weft/detail/select_case.hpp>
#include <weft/net/socket.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>

namespace weft::net {

// Cases of a select(). A stream is readable, or writable, when a call that reads, or writes, would
// return at once: with bytes, the end of the stream, an error, or because the stream is closed or
// its deadline has passed. A listener is readable when accept() would.
// Waiting counts as a call in that direction: nobody else may read, or write, meanwhile, and a
// select names each direction of a socket once. The handler, which is called when all waiting is
// over, may.
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_readable(const TcpStream& stream, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(stream.socket().handle(), detail::IoCase::Direction::read,
                                        std::move(handler));
}
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_readable(const TcpListener& listener, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(listener.socket().handle(), detail::IoCase::Direction::read,
                                        std::move(handler));
}
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_writable(const TcpStream& stream, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(stream.socket().handle(), detail::IoCase::Direction::write,
                                        std::move(handler));
}

}  // namespace weft::net
