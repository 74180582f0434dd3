#pragma once

#include <cstddef>

namespace weft::base {

// Keeps data that different threads write at this distance. It is two 64-byte lines, because the
// adjacent-line prefetcher of x86-64 fetches lines in pairs.
inline constexpr std::size_t kCacheLine = 128;

}  // namespace weft::base
