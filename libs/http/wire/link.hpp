// Reads and writes the bytes of a connection that carries HTTP.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>
#include <weft/deadline.hpp>
#include <weft/http/layer.hpp>
#include <weft/net/result.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/until.hpp>

namespace weft::http {

// Refers to a stream, and to an optional layer (such as TLS) through which all bytes then pass.
// Context, Errors, Throws: as for net::TcpStream and Layer.
struct Link {
  net::TcpStream& stream;
  Layer* layer = nullptr;

  net::Result<std::size_t> read_some(std::span<std::byte> buffer, const Until& until) const {
    return layer != nullptr ? layer->read_some(buffer, until) : stream.read_some(buffer, until);
  }
  // Writes all of `data` if there is a layer, but perhaps only a part if there is none.
  net::Result<std::size_t> write_some(std::span<const std::byte> data, const Until& until) const {
    return layer != nullptr ? layer->write_all(data, until) : stream.write_some(data, until);
  }
  net::Result<std::size_t> write_all(std::span<const std::byte> data, const Until& until) const {
    return layer != nullptr ? layer->write_all(data, until) : stream.write_all(data, until);
  }
  // Returns false only if the caller has read every byte that the layer took from the stream.
  [[nodiscard]] bool may_have_read_ahead() const {
    return layer != nullptr && layer->may_have_read_ahead();
  }
  // Notifies the peer that this side will send no more bytes.
  std::error_code end_writing(const Until& until) const {
    return layer != nullptr ? layer->shutdown(until) : stream.shutdown(net::Shutdown::write);
  }
  // Lets the layer notify the peer that nothing more will be sent, but does not wait.
  void announce_end() const {
    if (layer != nullptr) (void)layer->shutdown(Deadline::past());
  }
};

}  // namespace weft::http
