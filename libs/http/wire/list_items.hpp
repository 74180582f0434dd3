// The items of lists: "a, b;c=d", "a=1&b=2".
#pragma once

#include <string_view>

namespace weft::http {

// Returns `text` without the blanks around it.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;
// Takes the first item of a list, which may be empty. `list` is what is left of it.
[[nodiscard]] std::string_view take_up_to(char separator, std::string_view& list) noexcept;
// The same with commas, and trimmed.
[[nodiscard]] std::string_view take_item(std::string_view& list) noexcept;
// The same with semicolons.
[[nodiscard]] std::string_view take_part(std::string_view& list) noexcept;

}  // namespace weft::http
