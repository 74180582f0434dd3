// Sockets as cases of a select().
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>
#include <weft/detail/io_watch.hpp>
#include <weft/detail/select_case.hpp>
#include <weft/net/socket.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>

namespace weft::detail {

// Whether a call on a socket would not have to wait, as a case. While the select waits, a watch in
// the socket's direction brings edges to a list of the case's own; what they mean is asked of the
// kernel when the case is attempted. So it is ready also if the edge was used up before.
// Invariants
//   I1  While watching_ the watch is in the direction, or has been told, and the case counts as a
//       call that uses the descriptor.
//   I2  Before the kernel is asked, a watch that has been told is put in again: an edge that comes
//       after the answer is noticed. Who takes an edge away lets the next call try at once.
class SocketCase : public SelectCase, private IoWatch {
 public:
  enum class Direction : std::uint8_t { read, write };

 protected:
  SocketCase(const net::Socket& socket, Direction direction) noexcept
      : SelectCase(&own_lock_, &own_list_),
        IoWatch{&SocketCase::note_edge},
        handle_(socket.handle()),
        direction_(direction) {}

 private:
  void prepare() noexcept override;
  void dismiss() noexcept override;
  bool attempt() noexcept override;
  bool is_ready() noexcept override;
  Deadline due() noexcept override;
  bool conclude() noexcept override { return false; }  // Something happened: ask what.
  [[nodiscard]] bool asks_kernel() const noexcept override { return true; }

  [[nodiscard]] bool take_note() noexcept;
  static Waker note_edge(IoWatch& watch) noexcept;

  io::IoHandle* const handle_;  // Null: the socket is empty.
  const Direction direction_;
  bool watching_ = false;
  bool told_ = false;  // Guarded by own_lock_.
  SpinLock own_lock_;
  WaitList own_list_;
};

template <class Handler>
class ReadinessCase final : public SocketCase {
 public:
  ReadinessCase(const net::Socket& socket, Direction direction, Handler handler)
      : SocketCase(socket, direction), handler_(std::move(handler)) {}

  void handle() override { handler_(); }

 private:
  Handler handler_;
};

}  // namespace weft::detail

namespace weft::net {

// Cases of a select(). A stream is readable, or writable, when a call that reads, or writes, would
// return at once: with bytes, the end of the stream, an error, or because the stream is closed or
// its deadline has passed. A listener is readable when accept() would.
// Waiting counts as a call in that direction: nobody else may read, or write, meanwhile, and a
// select names each direction of a socket once. The handler, which is called when all waiting is
// over, may.
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_readable(const TcpStream& stream, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(stream.socket(), detail::SocketCase::Direction::read,
                                        std::move(handler));
}
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_readable(const TcpListener& listener, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(listener.socket(), detail::SocketCase::Direction::read,
                                        std::move(handler));
}
template <std::invocable Handler = detail::Nothing>
[[nodiscard]] auto on_writable(const TcpStream& stream, Handler handler = {}) {
  return detail::ReadinessCase<Handler>(stream.socket(), detail::SocketCase::Direction::write,
                                        std::move(handler));
}

}  // namespace weft::net
