// The rules for a pool's options.
#pragma once

#include <weft/pool_options.hpp>

namespace weft::pool {

// The options as they are. Throws std::invalid_argument that names the one that cannot be.
[[nodiscard]] PoolOptions checked(PoolOptions options);

}  // namespace weft::pool
