#include <weft/channel.hpp>

#include <stdexcept>
#include <string>

namespace weft::detail {

void refuse_capacity(std::size_t capacity, std::size_t most) {
  throw std::invalid_argument("weft::Channel: capacity = " + std::to_string(capacity) +
                              ", at most " + std::to_string(most) + " values of this type");
}

}  // namespace weft::detail
