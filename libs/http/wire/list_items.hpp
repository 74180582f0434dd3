// Splits lists, such as "a, b;c=d" and "a=1&b=2", into items.
#pragma once

#include <string_view>

namespace weft::http {

// Returns `text` without leading and trailing spaces and tabs.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;
// Removes the first item, which may be empty, from `list`, and returns the item.
[[nodiscard]] std::string_view take_up_to(char separator, std::string_view& list) noexcept;
// Removes and returns the first item, trimmed, of a comma-separated list.
[[nodiscard]] std::string_view take_item(std::string_view& list) noexcept;
// Removes and returns the first item, trimmed, of a semicolon-separated list.
[[nodiscard]] std::string_view take_part(std::string_view& list) noexcept;

}  // namespace weft::http
