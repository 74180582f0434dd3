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
#include <weft/http/layer.hpp>
#include <weft/http/response.hpp>
#include <weft/net/result.hpp>
#include <weft/net/tcp_stream.hpp>

#include "libs/http/server/progress.hpp"
#include "net/connections.hpp"

namespace weft::io {
class IoDirection;
}

namespace weft::http {

class Allowance;
class ServerCore;
enum class SessionEnd : std::uint8_t;

// All that there is of a connection on which nothing is asked: its socket, and what waits for bytes
// without a stack.
class Connection : public net::ConnectionRecord {
 public:
  Connection(net::TcpStream stream, ServerCore& server) noexcept;

  // As net::ConnectionRecord has it; a fiber then serves the connection.
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

  // Requests that came by it. Relaxed: only a number.
  void count_request() noexcept {
    requests_.store(requests_.load(detail::relaxed) + 1, detail::relaxed);
  }
  [[nodiscard]] std::uint32_t requests() const noexcept { return requests_.load(detail::relaxed); }

  // The progress of the request that is being read or answered.
  [[nodiscard]] Progress& progress() noexcept { return progress_; }
  [[nodiscard]] const Progress& progress() const noexcept { return progress_; }

 private:
  std::error_code write_by_layer(std::span<const std::byte> bytes, Allowance& allowance);
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
  Progress progress_;
  detail::Atomic<std::uint32_t> requests_{0};
};

}  // namespace weft::http
