// Determines the encodings that a client accepts.
#pragma once

#include <span>
#include <string_view>
#include <weft/http/header.hpp>

namespace weft::http {

// Returns whether the Accept-Encoding headers of a request allow gzip and do not prefer the
// unencoded form (RFC 9110, 12.5.3). Returns false if the request has no such header.
[[nodiscard]] bool accepts_gzip(std::span<const Header> headers) noexcept;

// Takes the next item of a list of the form "a, b;c=d", without the blanks around it. Returns false
// at the end of the list. `rest` becomes the remainder of the list.
[[nodiscard]] bool next_item(std::string_view& rest, std::string_view& item) noexcept;

// Returns the quality of an item such as "gzip;q=0.5", in thousandths from 0 to 1000. Returns 1000
// if the item has no quality, and 0 if the quality is malformed. Sets `name` to the name before the
// quality.
[[nodiscard]] int quality_of(std::string_view item, std::string_view& name) noexcept;

}  // namespace weft::http
