// Parses header values with parameters, such as "form-data; name=\"a\"".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weft::http {

// Returns the text before the first semicolon, without surrounding spaces and tabs.
[[nodiscard]] std::string_view media_type(std::string_view value) noexcept;
// Returns the value of a parameter without its quotes. The letter case of the parameter's name does
// not matter. `is_clear` becomes false if the parameters are malformed, or this parameter appears
// twice.
[[nodiscard]] std::optional<std::string> parameter_of(std::string_view value, std::string_view name,
                                                      bool& is_clear);

}  // namespace weft::http
