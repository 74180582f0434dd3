// Defines a layer between HTTP and TCP, usually TLS.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <weft/net/result.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/net/tls_info.hpp>
#include <weft/until.hpp>

namespace weft::http {

// Transforms the bytes at one end of a connection. The connection's TcpStream outlives the layer.
// weft/tls/http.hpp provides layers for TLS; weft-http itself provides none.
// Context: fibers and plain threads, one reader and one writer at a time; all calls may park.
// Errors: errors of net::TcpStream and of the layer.
// Throws: std::bad_alloc.
class Layer {
 public:
  virtual ~Layer() = default;
  // Reads at least one byte. With Deadline::past(), takes only bytes that are already available.
  virtual net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until) = 0;
  // Returns true if the layer may hold bytes that it has already taken from the stream.
  [[nodiscard]] virtual bool may_have_read_ahead() const { return true; }
  // Writes all of `data`. After an error, the `value` of the result is the number of written bytes.
  virtual net::Result<std::size_t> write_all(std::span<const std::byte> data,
                                             const Until& until) = 0;
  // Returns the data for Request::tls(); empty if the layer is not TLS.
  [[nodiscard]] virtual std::optional<net::TlsInfo> tls_info() const { return std::nullopt; }
  // Notifies the peer that nothing more will be sent.
  virtual net::Result<void> shutdown(const Until& until) = 0;
};

using NewLayer = net::Result<std::unique_ptr<Layer>>;
// Performs a handshake with a connected client, or with the server named `host`. An error that
// equals std::errc::resource_unavailable_try_again makes a server reset the connection at once.
using ServerLayer = std::function<NewLayer(net::TcpStream& stream, const Until& until)>;
using ClientLayer =
    std::function<NewLayer(net::TcpStream& stream, const std::string& host, const Until& until)>;

}  // namespace weft::http
