#include <weft/descriptor.hpp>

#include "io/attempt.hpp"

namespace weft {

void Descriptor::reset() noexcept {
  if (descriptor_ >= 0) io::close_descriptor(release());
}

}  // namespace weft
