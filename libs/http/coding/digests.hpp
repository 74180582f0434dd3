// Lists the headers that contain a digest of the encoded body.
#pragma once

#include <array>
#include <string_view>

namespace weft::http {

// These headers become wrong if a body is compressed or decompressed.
inline constexpr std::array<std::string_view, 4> kDigests = {"Content-MD5", "Digest",
                                                             "Content-Digest", "Repr-Digest"};

}  // namespace weft::http
