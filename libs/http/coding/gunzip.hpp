// Decompresses gzip streams.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <weft/net/result.hpp>

namespace weft::http {

// Decompresses a gzip stream of one or more members (RFC 1952). Only one fiber at a time may use a
// Gunzip.
class Gunzip {
 public:
  // Returns null if the library is built without zlib, or if memory runs out.
  [[nodiscard]] static std::unique_ptr<Gunzip> make() noexcept;
  [[nodiscard]] static bool is_built_in() noexcept;
  virtual ~Gunzip() = default;
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  // Returns the buffer for the next compressed bytes. Call it only after take() has returned 0.
  [[nodiscard]] virtual std::span<std::byte> room() noexcept = 0;
  // Adds `size` bytes that the caller has written into room().
  virtual void add(std::size_t size) noexcept = 0;
  // Decompresses as much of the input into the buffer as fits.
  // Errors: Errc::malformed_coding, std::errc::not_enough_memory.
  virtual net::Result<std::size_t> take(std::span<std::byte> buffer) noexcept = 0;
  // Returns whether the input so far is a complete gzip stream.
  [[nodiscard]] virtual bool is_complete() const noexcept = 0;

 protected:
  Gunzip() noexcept = default;
};

}  // namespace weft::http
