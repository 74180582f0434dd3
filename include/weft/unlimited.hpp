// Defines the value that means "no limit".
// Context: plain value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

// Means no limit, as the value of an option such as ServerOptions::max_connections.
inline constexpr std::size_t kUnlimited = SIZE_MAX;

}  // namespace weft
