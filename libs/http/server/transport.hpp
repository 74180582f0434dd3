// Reads and writes the bytes of a server's connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/http/layer.hpp>
#include <weft/net/address.hpp>
#include <weft/net/result.hpp>
#include <weft/net/tcp_stream.hpp>

#include "libs/http/server/progress.hpp"
#include "libs/http/wire/link.hpp"

namespace weft::http {

class Allowance;

// Reads and writes a client's stream, optionally through a layer, and records the progress. Only
// the serving fiber may call these functions, unless a comment names other callers.
class Transport {
 public:
  explicit Transport(net::TcpStream stream) noexcept : stream_(std::move(stream)) {}

  // Makes the next read try the socket again. Called after an edge was consumed, because the edge
  // may have announced bytes.
  void expect_bytes() noexcept;
  // Returns whether a read may find bytes. If not, all received bytes have been read, and later
  // bytes cause an edge.
  [[nodiscard]] bool may_have_bytes() noexcept;
  // Returns true if there are bytes to read or the stream has ended.
  [[nodiscard]] bool has_bytes();
  // Reads the available bytes. If the deadline has already passed, the call does not wait.
  net::Result<std::size_t> read(std::span<std::byte> room, Deadline deadline);
  // Writes all of `text`. Fails if the client reads too slowly for `allowance`.
  std::error_code write(std::string_view text, Allowance& allowance);
  // Writes part of a file with sendfile(). The connection must have no layer. Stores the number of
  // written bytes in `written`.
  std::error_code write_file(int descriptor, std::uint64_t offset, std::uint64_t size,
                             Allowance& allowance, std::uint64_t& written);
  // Gives the client time to receive the last response before the close. A close with unread bytes
  // would discard the response. Parks for at most one second.
  void linger();
  // Closes the connection with a reset, so that the client sees that the response is incomplete.
  void reset() noexcept;

  [[nodiscard]] net::TcpStream& stream() noexcept { return stream_; }
  [[nodiscard]] const net::TcpStream& stream() const noexcept { return stream_; }
  [[nodiscard]] Link link() noexcept { return {stream_, layer_.get()}; }
  // Returns the connection's layer, or null if there is none.
  [[nodiscard]] Layer* layer() const noexcept { return layer_.get(); }
  void set_layer(std::unique_ptr<Layer> layer) noexcept { layer_ = std::move(layer); }
  // Returns the client's address; 0.0.0.0:0 for a Unix socket or a closed connection. Any thread
  // that keeps the connection's record alive may call peer() and progress().
  [[nodiscard]] net::Address peer() const noexcept { return stream_.peer_address().value; }
  // Returns the progress of the request that is being read or answered.
  [[nodiscard]] const Progress& progress() const noexcept { return progress_; }
  [[nodiscard]] Progress& progress() noexcept { return progress_; }

 private:
  std::error_code write_by_layer(std::span<const std::byte> bytes, Allowance& allowance);

  net::TcpStream stream_;
  std::unique_ptr<Layer> layer_;
  Progress progress_;
};

}  // namespace weft::http
