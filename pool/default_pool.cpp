#include <chrono>
#include <weft/pool.hpp>

namespace weft {

// The pool is never destroyed, because tasks may be submitted until the process ends. Idle workers
// end soon, so an idle pool keeps no Runtime busy. A runtime at its end waits for all fibers,
// including the pool's workers, which then retire at once.
FiberPool& default_pool() {
  static FiberPool* const pool =
      new FiberPool({.idle_timeout = std::chrono::milliseconds(10), .name = "default"});
  return *pool;
}

}  // namespace weft
