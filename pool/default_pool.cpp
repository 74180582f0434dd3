#include <chrono>
#include <weft/pool.hpp>

namespace weft {

// The pool is never destroyed, because tasks may be submitted until the process ends. While the
// pool is idle it has no fiber, so no Runtime depends on it. A runtime that ends waits for the
// pool's workers as for all fibers; the workers then retire at once.
FiberPool& default_pool() {
  static FiberPool* const pool =
      new FiberPool({.idle_timeout = std::chrono::milliseconds(10), .name = "default"});
  return *pool;
}

}  // namespace weft
