// The encodings that a client takes.
#pragma once

#include <span>
#include <string_view>
#include <weft/http/header.hpp>

namespace weft::http {

// Whether the Accept-Encoding headers of a request allow gzip, and do not prefer the text as it is
// (RFC 9110, 12.5.3). Without such a header: no.
[[nodiscard]] bool accepts_gzip(std::span<const Header> headers) noexcept;

// The parts of a list of the form "a, b;c=d", one after the other: each without the blanks around
// it. False at the end. `rest` is what is left of the list.
[[nodiscard]] bool next_item(std::string_view& rest, std::string_view& item) noexcept;

// A quality, from 0 to 1 in thousandths, of an item such as "gzip;q=0.5"; 1000 if it has none, and
// 0 for one that is malformed. `name` is what stands before it.
[[nodiscard]] int quality_of(std::string_view item, std::string_view& name) noexcept;

}  // namespace weft::http
