// Searches lists of header names.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <weft/http/header.hpp>

namespace weft::http {

template <std::size_t size>
[[nodiscard]] bool is_one_of(std::string_view name,
                             const std::array<std::string_view, size>& names) noexcept {
  return std::any_of(names.begin(), names.end(),
                     [name](std::string_view each) { return equal_tokens(name, each); });
}

// Headers that contain a digest of the encoded body. They become wrong if the body is compressed or
// decompressed.
inline constexpr std::array<std::string_view, 4> kDigests = {"Content-MD5", "Digest",
                                                             "Content-Digest", "Repr-Digest"};

}  // namespace weft::http
