// Provides HTTP over TLS, for programs that link weft-http and weft-tls.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <weft/http/layer.hpp>
#include <weft/tls/context.hpp>
#include <weft/tls/stream.hpp>

namespace weft::tls {

// Implements the Layer interface of weft-http with a Stream.
// Context, Throws: the same as for Stream.
class HttpLayer final : public http::Layer {
 public:
  // Takes over a stream whose handshake has succeeded.
  explicit HttpLayer(Stream stream) noexcept : stream_(std::move(stream)) {}

  // Does the same as Stream::read_some().
  net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until) override {
    return stream_.read_some(buffer, until);
  }
  // Does the same as Stream::has_read_ahead().
  [[nodiscard]] bool may_have_read_ahead() const override { return stream_.has_read_ahead(); }
  // Does the same as Stream::write_all().
  net::Result<std::size_t> write_all(std::span<const std::byte> data, const Until& until) override {
    return stream_.write_all(data, until);
  }
  // Does the same as Stream::shutdown(): sends close_notify.
  net::Result<void> shutdown(const Until& until) override { return stream_.shutdown(until); }
  // Does the same as Stream::info().
  [[nodiscard]] std::optional<net::TlsInfo> tls_info() const override { return stream_.info(); }
  // Returns the stream, for example to read its certificate.
  [[nodiscard]] Stream& stream() noexcept { return stream_; }

  // Makes a layer from a handshake's result, or returns its error. Programs may also call make().
  // Throws: std::bad_alloc.
  static http::NewLayer make(net::Result<Stream> result) {
    if (result.error) return {.error = result.error};
    return {.value = std::make_unique<HttpLayer>(std::move(result.value))};
  }

 private:
  Stream stream_;
};

// Returns a value for ServerOptions::secure. The context's ALPN list may contain only "http/1.1".
// Context: plain value.
// Throws: std::bad_alloc.
[[nodiscard]] inline http::ServerLayer server_layer(Context context) {
  return [context = std::move(context)](net::TcpStream& stream, const Until& until) {
    return HttpLayer::make(Stream::accept_on(stream, context, until));
  };
}
// Returns a value for http::ClientOptions::secure. The server's certificate must name the host.
// Context: plain value.
// Throws: std::bad_alloc.
[[nodiscard]] inline http::ClientLayer client_layer(Context context) {
  return [context = std::move(context)](net::TcpStream& stream, const std::string& host,
                                        const Until& until) {
    return HttpLayer::make(Stream::connect_on(stream, context, host, until));
  };
}

}  // namespace weft::tls
