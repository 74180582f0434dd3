// The result of a call over the network.
#pragma once

#include <weft/result.hpp>

namespace weft::net {

using weft::Result;

}  // namespace weft::net
