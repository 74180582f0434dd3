// Kinds of bytes, whatever the locale.
#pragma once

namespace weft::http {

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

}  // namespace weft::http
