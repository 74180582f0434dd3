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
// fiber that serves the connection calls it, except where a function documents another caller.
class Transport {
 public:
  explicit Transport(net::TcpStream stream) noexcept : stream_(std::move(stream)) {}

  // From now on reads look for bytes: an edge was consumed that may have announced some.
  void expect_bytes() noexcept;
  // Returns whether a read may find something. False: everything received has been read, so more
  // bytes cause an edge.
  [[nodiscard]] bool may_have_bytes() noexcept;
  // Returns whether there is something to read, or the stream has ended.
  [[nodiscard]] bool has_bytes();
  // Reads the available bytes. With a past deadline it does not wait.
  net::Result<std::size_t> read(std::span<std::byte> room, Deadline deadline);
  // Writes everything, as long as the client is fast enough for `allowance`.
  std::error_code write(std::string_view text, Allowance& allowance);
  // Writes a part of a file through the kernel; only without a layer. `written` counts the bytes
  // written.
  std::error_code write_file(int descriptor, std::uint64_t offset, std::uint64_t size,
                             Allowance& allowance, std::uint64_t& written);
  // Closes the connection so that the last answer still arrives: closing it with unread bytes would
  // discard the answer. Parks for at most a second.
  void linger();
  // Closes the connection so that the client notices the missing part.
  void reset() noexcept;

  [[nodiscard]] net::TcpStream& stream() noexcept { return stream_; }
  [[nodiscard]] const net::TcpStream& stream() const noexcept { return stream_; }
  [[nodiscard]] Link link() noexcept { return {stream_, layer_.get()}; }
  // Null: HTTP without a layer.
  [[nodiscard]] Layer* layer() const noexcept { return layer_.get(); }
  void set_layer(std::unique_ptr<Layer> layer) noexcept { layer_ = std::move(layer); }
  // Returns the client's address, or 0.0.0.0:0 once the connection is closed. Any thread that keeps
  // the record alive may call this and the next function.
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
