// Provides Beast WebSockets that need no stack while the client is silent. This header requires
// Boost's headers and weft-http.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <weft/asio/http.hpp>
#include <weft/http/response.hpp>
#include <weft/net/tcp_stream.hpp>

namespace weft::asio {
inline namespace WEFT_ASIO_LIBRARY {

// Reads an upgraded connection frame by frame (RFC 6455): no read extends beyond the current frame.
// Beast itself reads ahead as far as it can, and does not report how much. With this stream, Beast
// has read nothing beyond a complete message. After the message, a talk (see Response::upgrade) may
// return net::Next::idle if has_more() is false. A system call may deliver bytes of later frames,
// which the stream buffers. Each call of the talk must begin with resume().
// Context: fibers and plain threads, one reader and one writer at a time; reads and writes park.
// Throws: std::bad_alloc.
// Ordering: the same as for net::TcpStream.
class FrameStream {
 public:
  // Sets the connection; it must outlive all reads and writes that start before the next resume().
  void resume(http::Upgraded& upgraded) noexcept { upgraded_ = &upgraded; }
  // Returns true if the caller must keep reading: bytes are buffered or a frame is incomplete.
  [[nodiscard]] bool has_more() const noexcept {
    return begin_ < end_ || header_size_ > 0 || !upgraded_->early.empty();
  }

  // Reads at least one byte of the frame, as Upgraded::read_some() does.
  net::Result<std::size_t> read_some(std::span<std::byte> buffer,
                                     const Until& until = Until::never()) {
    buffer = buffer.first(std::min<std::uint64_t>(buffer.size(), rest_of_frame()));
    if (begin_ == end_) {
      if (buffer.size() >= kAhead) return passed(upgraded_->read_some(buffer, until), buffer);
      if (ahead_ == nullptr) ahead_ = std::make_unique_for_overwrite<std::byte[]>(kAhead);
      const auto [count, error] = upgraded_->read_some({ahead_.get(), kAhead}, until);
      if (error) return {.error = error};
      begin_ = 0;
      end_ = count;
    }
    const std::size_t count = std::min(buffer.size(), end_ - begin_);
    std::copy_n(ahead_.get() + begin_, count, buffer.data());
    begin_ += count;
    if (begin_ == end_) ahead_.reset();
    return passed({.value = count}, buffer);
  }
  // Does the same as Upgraded::write_some().
  net::Result<std::size_t> write_some(std::span<const std::byte> data,
                                      const Until& until = Until::never()) {
    return upgraded_->write_some(data, until);
  }
  // Ends the connection.
  void close() noexcept { upgraded_->close(); }

 private:
  // The buffer's size in bytes; a read of at least this size bypasses an empty buffer.
  static constexpr std::size_t kAhead = 2048;

  // Returns the size of the current frame's header. The first two bytes of the header determine the
  // size: they show whether a longer length and a mask follow.
  [[nodiscard]] std::size_t full_header_size() const noexcept {
    if (header_size_ < 2) return 2;
    return 2 + longer_length_size() + ((header_[1] & std::byte{128}) != std::byte{0} ? 4 : 0);
  }
  [[nodiscard]] unsigned short_length() const noexcept {
    return std::to_integer<unsigned>(header_[1] & std::byte{127});
  }
  [[nodiscard]] std::size_t longer_length_size() const noexcept {
    return short_length() == 127 ? 8 : short_length() == 126 ? 2 : 0;
  }
  [[nodiscard]] std::uint64_t rest_of_frame() const noexcept {
    return payload_ > 0 ? payload_ : full_header_size() - header_size_;
  }
  [[nodiscard]] std::uint64_t payload_size() const noexcept {
    if (longer_length_size() == 0) return short_length();
    std::uint64_t size = 0;
    for (std::size_t i = 2; i < 2 + longer_length_size(); ++i) {
      size = size << 8U | std::to_integer<std::uint64_t>(header_[i]);
    }
    return size;
  }

  // Updates the state of the frame after a read.
  net::Result<std::size_t> passed(net::Result<std::size_t> read,
                                  std::span<const std::byte> buffer) {
    if (read.error) return read;
    if (payload_ > 0) {
      payload_ -= read.value;
    } else {
      std::copy_n(buffer.data(), read.value, header_ + header_size_);
      header_size_ += read.value;
      if (header_size_ == full_header_size()) payload_ = payload_size();
    }
    if (payload_ == 0 && header_size_ == full_header_size()) header_size_ = 0;
    return read;
  }

  static constexpr std::size_t kLongestHeader = 14;

  http::Upgraded* upgraded_ = nullptr;
  std::unique_ptr<std::byte[]> ahead_;  // Bytes from begin_ to end_; freed once they are read.
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::byte header_[kLongestHeader] = {};
  std::size_t header_size_ = 0;  // 0: between two frames.
  std::uint64_t payload_ = 0;    // The number of unread payload bytes.
};

// The next-layer stream that a program passes to boost::beast::websocket::stream.
using IdleStream = SyncStream<FrameStream>;

}  // namespace WEFT_ASIO_LIBRARY
}  // namespace weft::asio
