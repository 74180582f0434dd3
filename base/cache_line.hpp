#pragma once

#include <cstddef>

namespace weft::base {

// Data that different threads write is this far apart: two lines of 64 bytes, because the
// adjacent-line prefetcher of x86-64 fetches lines in pairs.
inline constexpr std::size_t kCacheLine = 128;

}  // namespace weft::base
