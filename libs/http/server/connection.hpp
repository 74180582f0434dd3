// The record of one connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/io_watch.hpp>
#include <weft/detail/waist.hpp>
#include <weft/http/layer.hpp>
#include <weft/http/response.hpp>
#include <weft/net/result.hpp>
#include <weft/net/tcp_stream.hpp>

#include "libs/http/server/progress.hpp"

namespace weft::io {
class IoDirection;
}

namespace weft::http {

class Allowance;
class ServerCore;
enum class SessionEnd : std::uint8_t;

// All that there is of a connection on which nothing is asked: its socket, a watch for bytes, and a
// fiber that has not started, which is a record and no stack.
// Invariants
//   I1  Either one fiber serves the connection, or its watch waits, or has been notified and its
//       fiber is on its way. So one caller at a time uses the record, except for its links.
//       Unchecked: needs the view of the fiber and that of the direction.
//   I2  It is in its server's registry from its birth to its end, which that fiber brings about.
class Connection : private detail::IoWatch {
 public:
  Connection(net::TcpStream stream, ServerCore& server) noexcept;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Leaves the connection alone until there are bytes, the stream's end, or the registry pokes it:
  // then a new fiber serves it. The caller must not touch the connection any more. False if there
  // is no fiber to be had; then it is still the caller's. Never parks.
  [[nodiscard]] bool wait_for_bytes() noexcept;

  // Whether a read may find something: false if all that has come has been read. Then more makes an
  // edge. The serving fiber calls it.
  [[nodiscard]] bool may_have_bytes() noexcept;
  // Reads what there is. A past deadline only looks.
  net::Result<std::size_t> read(std::span<char> room, Deadline deadline);
  // Writes all, as long as the client is fast enough for `allowance`.
  std::error_code write(std::string_view text, Allowance& allowance);
  // Writes part of a file, by the kernel; without a layer only. `written` counts what it took.
  std::error_code write_file(int descriptor, std::uint64_t offset, std::uint64_t size,
                             Allowance& allowance, std::uint64_t& written);
  // Ends the connection so that the last answer still arrives: a close with unread bytes would
  // take it back. Parks, for a second at most.
  void linger();
  // From now on `talk` is called instead of a session, at first with the bytes that came early. The
  // serving fiber calls it.
  void upgrade(Talk talk, std::string_view early);
  // Ends the connection so that the client knows that not all has come.
  void reset() noexcept;

  // An edge came without bytes: the server stops, or the keeper has found that nothing has been
  // asked for too long. False: it was a false alarm.
  [[nodiscard]] bool must_end() const noexcept;

  [[nodiscard]] net::TcpStream& stream() noexcept { return stream_; }
  // The client's address; 0.0.0.0:0 once the connection is closed. Any thread that keeps the record
  // from its end may call it.
  [[nodiscard]] net::Address peer() const noexcept { return stream_.peer_address().value; }
  // Null: HTTP is spoken as it is.
  [[nodiscard]] Layer* layer() const noexcept { return layer_.get(); }
  [[nodiscard]] ServerCore& server() const noexcept { return server_; }

  // When a request was last answered, by Deadline's clock. The serving fiber writes it, and the
  // keeper reads it. Relaxed: a moment that is a little stale is as good.
  void note_activity(std::int64_t now) noexcept { active_at_.store(now, detail::relaxed); }
  [[nodiscard]] std::int64_t active_at() const noexcept { return active_at_.load(detail::relaxed); }
  // Requests that came by it. Relaxed: only a number.
  void count_request() noexcept {
    requests_.store(requests_.load(detail::relaxed) + 1, detail::relaxed);
  }
  [[nodiscard]] std::uint32_t requests() const noexcept { return requests_.load(detail::relaxed); }

  // The progress of the request that is being read or answered.
  [[nodiscard]] Progress& progress() noexcept { return progress_; }
  [[nodiscard]] const Progress& progress() const noexcept { return progress_; }

  // The number of the fiber that may call what the program has given to the server: handlers,
  // talks, logs. That fiber writes it; a shutdown reads it, and looks for its own. Relaxed: a fiber
  // sees what it has written, and no two fibers have the same number.
  void set_caller(std::uint64_t fiber) noexcept { caller_.store(fiber, detail::relaxed); }
  [[nodiscard]] std::uint64_t caller() const noexcept { return caller_.load(detail::relaxed); }
  // The caller shuts the server down: no shutdown in a handler waits for this connection. That
  // caller calls it; true the first time.
  [[nodiscard]] bool excuse() noexcept { return !std::exchange(is_excused_, true); }
  [[nodiscard]] bool is_excused() const noexcept { return is_excused_; }

 private:
  friend class Registry;
  std::error_code write_by_layer(std::span<const std::byte> bytes, Allowance& allowance);
  static detail::Waker start_fiber(IoWatch& watch) noexcept;
  [[nodiscard]] io::IoDirection* reading() noexcept;
  void serve() noexcept;
  [[nodiscard]] SessionEnd serve_bytes();
  [[nodiscard]] SessionEnd shake_hands();
  [[nodiscard]] SessionEnd converse(bool begins);

  // The protocol behind HTTP, apart because few connections have one.
  struct Conversation {
    Talk talk;
    std::string early;
  };

  net::TcpStream stream_;
  std::unique_ptr<Layer> layer_;
  std::unique_ptr<Conversation> conversation_;
  ServerCore& server_;
  detail::Waker fiber_;
  detail::Atomic<std::int64_t> active_at_;
  detail::Atomic<std::uint64_t> caller_{0};
  Progress progress_;
  detail::Atomic<std::uint32_t> requests_{0};
  bool is_excused_ = false;
  // Guarded by the registry's lock, as is all below.
  std::uint32_t round_ = 0;
  std::int64_t look_at_ = 0;
  Connection* previous_ = nullptr;
  Connection* next_ = nullptr;
};

}  // namespace weft::http
