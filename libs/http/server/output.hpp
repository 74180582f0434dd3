// Collects the bytes for a client, so that few writes are needed.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <weft/http/limits.hpp>

#include "libs/http/server/allowance.hpp"

namespace weft::http {

class Transport;

// A small buffer in front of a connection. It keeps its first error, and drops all bytes that are
// written after the error.
class Output {
 public:
  Output(Transport& transport, const Limits& limits) noexcept;

  // Parks only when the buffer is full.
  void append(std::string_view text);
  void append_number(std::size_t number, int base = 10);
  // Writes a part of a chunked body.
  void append_chunk(std::string_view part);
  // Writes the current "Date: ...\r\n".
  void append_date();
  // Parks until the kernel has accepted all bytes.
  std::error_code flush();
  // Returns the client's remaining time for an answer; each answer begins with the full time.
  [[nodiscard]] Allowance& allowance() noexcept { return allowance_; }
  [[nodiscard]] std::error_code error() const noexcept { return error_; }

 private:
  static constexpr std::size_t kSize = 4096;

  Transport& transport_;
  Allowance allowance_;
  std::error_code error_;
  std::size_t size_ = 0;
  std::array<char, kSize> buffer_;
};

}  // namespace weft::http
