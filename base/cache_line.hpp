#pragma once

#include <cstddef>

namespace weft::base {

// Data written by different threads stands this far apart. Two lines of 64 bytes, because the
// adjacent-line prefetcher of x86-64 pulls them in pairs.
inline constexpr std::size_t kCacheLine = 128;

}  // namespace weft::base
