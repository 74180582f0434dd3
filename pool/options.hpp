// Checks the options of a pool.
#pragma once

#include <weft/pool_options.hpp>

namespace weft::pool {

// Throws a std::invalid_argument whose message names the invalid option.
void check(const PoolOptions& options);

}  // namespace weft::pool
