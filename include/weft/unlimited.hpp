// The value that means "no bound".
// Context: plain value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

// The value of a bound on a number, such as ServerOptions::max_connections, that means no bound.
inline constexpr std::size_t kUnlimited = SIZE_MAX;

}  // namespace weft
