// One line of a message's head. All may be called from anywhere; they neither park nor synchronize.
#pragma once

#include <string_view>

namespace weft::http {

// Names are compared without regard to case; values come without the blanks around them.
struct Header {
  std::string_view name;
  std::string_view value;
};

// Whether two names, or tokens, are the same except for the case of ASCII letters.
[[nodiscard]] bool equal_tokens(std::string_view left, std::string_view right) noexcept;
// Whether `token` is in a list of the form "a, b, c".
[[nodiscard]] bool list_has(std::string_view list, std::string_view token) noexcept;

}  // namespace weft::http
