// What a call over the network hands back.
#pragma once

#include <weft/result.hpp>

namespace weft::net {

using weft::Result;

}  // namespace weft::net
