// Values with parameters: "form-data; name=\"a\"".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weft::http {

// The part before the parameters, trimmed.
[[nodiscard]] std::string_view media_type(std::string_view value) noexcept;
// What a parameter of a value says, unquoted, with its name in any case. `is_clear` becomes false
// if the parameters cannot be taken apart, or have this one twice.
[[nodiscard]] std::optional<std::string> parameter_of(std::string_view value, std::string_view name,
                                                      bool& is_clear);

}  // namespace weft::http
