// Represents a header, which is a line of a message's head.
// Context: plain value.
#pragma once

#include <string_view>

namespace weft::http {

// Names are compared without regard to case; values have no leading or trailing spaces.
struct Header {
  std::string_view name;
  std::string_view value;
};

// Returns whether two names or tokens are equal, regardless of ASCII case.
[[nodiscard]] bool equal_tokens(std::string_view left, std::string_view right) noexcept;
// Returns whether `token` is in a list of the form "a, b, c".
[[nodiscard]] bool list_has(std::string_view list, std::string_view token) noexcept;

}  // namespace weft::http
