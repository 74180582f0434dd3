// The bytes of a server's connection.
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

// A client's stream, perhaps with a layer on it; records the progress of sending and receiving. The
// fiber that serves the connection calls the functions, except where another caller is documented.
class Transport {
 public:
  explicit Transport(net::TcpStream stream) noexcept : stream_(std::move(stream)) {}

  // Called when an edge, which may have announced bytes, has been consumed: from now on, reads try
  // the socket again.
  void expect_bytes() noexcept;
  // Returns whether a read may find bytes. If it returns false, all received bytes have been read,
  // and later bytes cause an edge.
  [[nodiscard]] bool may_have_bytes() noexcept;
  // Returns whether there are bytes to read, or the stream has ended.
  [[nodiscard]] bool has_bytes();
  // Reads the available bytes. With a past deadline, the call does not wait.
  net::Result<std::size_t> read(std::span<std::byte> room, Deadline deadline);
  // Writes the whole text, while the client is fast enough for `allowance`.
  std::error_code write(std::string_view text, Allowance& allowance);
  // Writes a part of a file by sendfile(), which requires that there is no layer. `written`
  // receives the number of bytes written.
  std::error_code write_file(int descriptor, std::uint64_t offset, std::uint64_t size,
                             Allowance& allowance, std::uint64_t& written);
  // Closes the connection so that the last answer still arrives: a close with unread bytes would
  // discard the answer. Parks for at most a second.
  void linger();
  // Closes the connection with a reset, so that the client notices that the answer is incomplete.
  void reset() noexcept;

  [[nodiscard]] net::TcpStream& stream() noexcept { return stream_; }
  [[nodiscard]] const net::TcpStream& stream() const noexcept { return stream_; }
  [[nodiscard]] Link link() noexcept { return {stream_, layer_.get()}; }
  // Returns null if the connection has no layer.
  [[nodiscard]] Layer* layer() const noexcept { return layer_.get(); }
  void set_layer(std::unique_ptr<Layer> layer) noexcept { layer_ = std::move(layer); }
  // Returns the client's address, or 0.0.0.0:0 once the connection is closed. Any thread that keeps
  // the record alive may call this and the next function.
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
