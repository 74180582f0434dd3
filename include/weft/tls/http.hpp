// HTTP over TLS: what weft-http is given for it. Needs weft-http and weft-tls.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <weft/http/layer.hpp>
#include <weft/tls/context.hpp>
#include <weft/tls/stream.hpp>

namespace weft::tls {

// A Stream as a Layer. It is called by weft-http, and parks, throws and synchronizes as the stream
// does.
class HttpLayer final : public http::Layer {
 public:
  // Takes over a stream whose handshake is over.
  explicit HttpLayer(Stream stream) noexcept : stream_(std::move(stream)) {}

  // Does the same as Stream::read_some(). Parks.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until) override {
    return stream_.read_some(buffer, until);
  }
  // Does the same as Stream::has_read_ahead().
  [[nodiscard]] bool may_have_read_ahead() const override { return stream_.has_read_ahead(); }
  // Does the same as Stream::write_all(). Parks.
  net::Result<std::size_t> write_all(std::span<const std::byte> data, const Until& until) override {
    return stream_.write_all(data, until);
  }
  // Does the same as Stream::shutdown(): sends close_notify. Parks.
  std::error_code shutdown(const Until& until) override { return stream_.shutdown(until); }
  // The stream inside, for its certificate, say.
  [[nodiscard]] Stream& stream() noexcept { return stream_; }

  // Turns a handshake's outcome into a layer, or its error. Use it for layers of your own.
  static http::NewLayer make(net::Result<Stream> result) {
    if (result.error) return {.error = result.error};
    return {.value = std::make_unique<HttpLayer>(std::move(result.value))};
  }

 private:
  Stream stream_;
};

// For http::ServerOptions::secure and http::ClientOptions::secure. The context's ALPN, if it has
// any, names "http/1.1". From anywhere; neither parks nor synchronizes. Throws std::bad_alloc.
[[nodiscard]] inline http::ServerLayer server_layer(Context context) {
  return [context = std::move(context)](net::TcpStream& stream, const Until& until) {
    return HttpLayer::make(Stream::accept_on(stream, context, until));
  };
}
// Does the same as server_layer(), for http::ClientOptions::secure: the host's name is what the
// certificate must be for.
[[nodiscard]] inline http::ClientLayer client_layer(Context context) {
  return [context = std::move(context)](net::TcpStream& stream, const std::string& host,
                                        const Until& until) {
    return HttpLayer::make(Stream::connect_on(stream, context, host, until));
  };
}

}  // namespace weft::tls
