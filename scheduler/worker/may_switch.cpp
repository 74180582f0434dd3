#include "scheduler/worker/may_switch.hpp"

#include <cstdio>

#include "base/panic.hpp"

namespace weft::scheduler {

void refuse_switch(const fibers::Stack& stack, const char* reason) noexcept {
  // Relaxed: a fiber's number does not change while the fiber is running.
  const auto id = static_cast<unsigned long long>(stack.fiber_id.load(detail::relaxed));
  char sentence[128];
  (void)std::snprintf(sentence, sizeof sentence, "fiber %llu '%s' parked or yielded %s", id,
                      stack.name.printable_copy().data(), reason);
  base::panic(sentence, __FILE__, __LINE__);
}

}  // namespace weft::scheduler
