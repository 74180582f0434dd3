// The items of a header's value that is a list: "a, b;c=d".
#pragma once

#include <string_view>

namespace weft::http {

// Returns `text` without the blanks around it.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;
// The first item of a list, trimmed; it may be empty. `list` is what is left of it.
[[nodiscard]] std::string_view take_item(std::string_view& list) noexcept;

}  // namespace weft::http
