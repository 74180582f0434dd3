// Checks whether a fiber may leave its thread.
#pragma once

#include "base/debug_locks.hpp"
#include "fibers/stack.hpp"

namespace weft::scheduler {

[[noreturn, gnu::cold]] void refuse_switch(const fibers::Stack& stack, const char* reason) noexcept;

// Must be called before the running fiber leaves its thread. `stack` is that fiber's stack. Aborts
// the process if the fiber must not leave its thread.
inline void check_may_switch(const fibers::Stack& stack) noexcept {
  if (stack.no_switch != 0) [[unlikely]] {
    refuse_switch(stack, stack.no_switch >= fibers::Stack::kForked
                             ? "in the child of a fork, where no worker is: end it by _exit or exec"
                             : "inside a NoSwitch scope");
  }
  if constexpr (base::kDebugLocks) {
    if (base::locks_held() > 0) refuse_switch(stack, "with a mutex locked that belongs to threads");
  }
}

}  // namespace weft::scheduler
