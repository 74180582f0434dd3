// Splits lists into items: "a, b;c=d", "a=1&b=2".
#pragma once

#include <string_view>

namespace weft::http {

// Returns `text` without leading and trailing spaces.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;
// Returns the first item of a list, which may be empty. `list` becomes the remainder.
[[nodiscard]] std::string_view take_up_to(char separator, std::string_view& list) noexcept;
// Does the same for a list with commas, and trims the item.
[[nodiscard]] std::string_view take_item(std::string_view& list) noexcept;
// Does the same for a list with semicolons, and trims the item.
[[nodiscard]] std::string_view take_part(std::string_view& list) noexcept;

}  // namespace weft::http
