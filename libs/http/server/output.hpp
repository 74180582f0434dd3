// Collects the bytes for a client, so that few writes suffice.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <weft/http/limits.hpp>

#include "libs/http/server/allowance.hpp"

namespace weft::http {

class Transport;

// Buffers the bytes for a connection. The buffer keeps its first error, and drops all later bytes.
class Output {
 public:
  Output(Transport& transport, const Limits& limits) noexcept;

  // Adds `text`. Parks only when the buffer is full.
  void append(std::string_view text);
  void append_number(std::size_t number, int base = 10);
  // Adds a chunk of a chunked body.
  void append_chunk(std::string_view part);
  // Adds the header "Date: ...\r\n" with the current date.
  void append_date();
  // Writes the buffer. Parks until the kernel has accepted all bytes.
  std::error_code flush();
  // Returns the time budget in which the client must accept the response. Each request restores the
  // full budget.
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
