#include <chrono>
#include <weft/pool.hpp>

namespace weft {

// Never destroyed: tasks may be submitted until the process ends. While the pool is idle it has no
// fiber, so no Runtime depends on it. When a runtime ends, it waits for the pool's workers as for
// all fibers; the workers then retire at once.
FiberPool& default_pool() {
  static FiberPool* const pool =
      new FiberPool({.idle_timeout = std::chrono::milliseconds(10), .name = "default"});
  return *pool;
}

}  // namespace weft
