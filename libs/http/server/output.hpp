// The bytes that go to the client, gathered into few writes.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <weft/http/limits.hpp>

#include "libs/http/server/allowance.hpp"

namespace weft::http {

class Transport;

// A small buffer in front of a connection. The first error stays: what comes after it is dropped.
class Output {
 public:
  Output(Transport& transport, const Limits& limits) noexcept;

  // Parks only when the buffer is full.
  void append(std::string_view text);
  void append_number(std::size_t number, int base = 10);
  // A part of a chunked body.
  void append_chunk(std::string_view part);
  // The current "Date: ...\r\n".
  void append_date();
  // Parks until the kernel has taken all.
  std::error_code flush();
  // The time that the client has for an answer; each one begins with all of it.
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
