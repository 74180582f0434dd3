// Declares a layer of a connection for tests.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <weft/http/layer.hpp>
#include <weft/net/tcp_stream.hpp>

namespace weft::test {

// Passes all bytes through unchanged.
class PlainLayer final : public http::Layer {
 public:
  explicit PlainLayer(net::TcpStream& stream) : stream_(stream) {}
  net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until) override {
    return stream_.read_some(buffer, until);
  }
  net::Result<std::size_t> write_all(std::span<const std::byte> data, const Until& until) override {
    return stream_.write_all(data, until);
  }
  net::Result<void> shutdown(const Until&) override { return {}; }

 private:
  net::TcpStream& stream_;
};

// Makes such a layer for ServerOptions::secure.
inline http::NewLayer make_plain_layer(net::TcpStream& stream, const Until&) {
  return {.value = std::make_unique<PlainLayer>(stream)};
}

}  // namespace weft::test
