// The rules for a pool's options.
#pragma once

#include <weft/pool_options.hpp>

namespace weft::pool {

// Throws std::invalid_argument that names the option that cannot be.
void check(const PoolOptions& options);

}  // namespace weft::pool
