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

// A client's stream, and perhaps a layer on it; notes the progress of what is sent and received.
// The fiber that serves the connection calls it, except where a function says otherwise.
class Transport {
 public:
  explicit Transport(net::TcpStream stream) noexcept : stream_(std::move(stream)) {}

  // From now on reads look for bytes: an edge has been used up, which may have been about some.
  void expect_bytes() noexcept;
  // Whether a read may find something: false if all that has come has been read. Then more makes an
  // edge.
  [[nodiscard]] bool may_have_bytes() noexcept;
  // Whether there is something to read, or the stream's end.
  [[nodiscard]] bool has_bytes();
  // Reads what there is. A past deadline only looks.
  net::Result<std::size_t> read(std::span<std::byte> room, Deadline deadline);
  // Writes all, as long as the client is fast enough for `allowance`.
  std::error_code write(std::string_view text, Allowance& allowance);
  // Writes part of a file, by the kernel; without a layer only. `written` counts what it took.
  std::error_code write_file(int descriptor, std::uint64_t offset, std::uint64_t size,
                             Allowance& allowance, std::uint64_t& written);
  // Ends the connection so that the last answer still arrives: a close with unread bytes would
  // take it back. Parks, for a second at most.
  void linger();
  // Ends the connection so that the client knows that not all has come.
  void reset() noexcept;

  [[nodiscard]] net::TcpStream& stream() noexcept { return stream_; }
  [[nodiscard]] Link link() noexcept { return {stream_, layer_.get()}; }
  // Null: HTTP is spoken as it is.
  [[nodiscard]] Layer* layer() const noexcept { return layer_.get(); }
  void set_layer(std::unique_ptr<Layer> layer) noexcept { layer_ = std::move(layer); }
  // The client's address; 0.0.0.0:0 once the connection is closed. Any thread that keeps the record
  // from its end may call it, and the next one.
  [[nodiscard]] net::Address peer() const noexcept { return stream_.peer_address().value; }
  // The progress of the request that is being read or answered.
  [[nodiscard]] const Progress& progress() const noexcept { return progress_; }
  [[nodiscard]] Progress& progress() noexcept { return progress_; }

 private:
  std::error_code write_by_layer(std::span<const std::byte> bytes, Allowance& allowance);

  net::TcpStream stream_;
  std::unique_ptr<Layer> layer_;
  Progress progress_;
};

}  // namespace weft::http
