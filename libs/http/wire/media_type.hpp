// Parses values with parameters: "form-data; name=\"a\"".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weft::http {

// Returns the part before the parameters, trimmed.
[[nodiscard]] std::string_view media_type(std::string_view value) noexcept;
// Returns the value of a parameter, unquoted; its name may be in any case. `is_clear` becomes false
// if the parameters are malformed, or this parameter appears twice.
[[nodiscard]] std::optional<std::string> parameter_of(std::string_view value, std::string_view name,
                                                      bool& is_clear);

}  // namespace weft::http
