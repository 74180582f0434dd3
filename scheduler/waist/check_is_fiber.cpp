#include "scheduler/waist/check_is_fiber.hpp"

#include <cstdio>

#include "base/panic.hpp"

namespace weft::scheduler {

void refuse_to_park(detail::WaitReason reason) noexcept {
  char sentence[128];
  (void)std::snprintf(sentence, sizeof sentence,
                      "a handler of the runtime, which is no fiber, would have to wait: %s",
                      detail::to_string(reason));
  base::panic(sentence, __FILE__, __LINE__);
}

}  // namespace weft::scheduler
