// A layer between HTTP and TCP: TLS, as a rule.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <weft/net/result.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/until.hpp>

namespace weft::http {

// One end of a connection on which bytes are not sent as they are. It stands on a TcpStream that
// outlives it. weft/tls/http.hpp has layers for TLS; weft-http itself has none. One caller reads
// and one writes at a time. All calls may park; their errors are TcpStream's, and more. Calls throw
// and synchronize where they say so.
class Layer {
 public:
  virtual ~Layer() = default;
  // As TcpStream's: with Deadline::past() they take what is there, and do not wait.
  virtual net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until) = 0;
  // False if a read could take nothing from what has come from the stream already.
  [[nodiscard]] virtual bool may_have_read_ahead() const { return true; }
  // All of it; after an error `value` bytes have been written.
  virtual net::Result<std::size_t> write_all(std::span<const std::byte> data,
                                             const Until& until) = 0;
  // Tells the peer that nothing more is sent.
  virtual std::error_code shutdown(const Until& until) = 0;
};

using NewLayer = net::Result<std::unique_ptr<Layer>>;
// Shakes hands with a client that has connected, or with the server of this name.
using ServerLayer = std::function<NewLayer(net::TcpStream& stream, const Until& until)>;
using ClientLayer =
    std::function<NewLayer(net::TcpStream& stream, const std::string& host, const Until& until)>;

}  // namespace weft::http
