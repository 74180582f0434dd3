#include <chrono>
#include <weft/pool.hpp>

namespace weft {

// Never destroyed: tasks may be submitted until the process ends. It has no fiber while it is idle,
// so no Runtime needs to know of it: a runtime that ends waits for its workers as for all fibers,
// and they retire at once.
FiberPool& default_pool() {
  static FiberPool* const pool =
      new FiberPool({.idle_timeout = std::chrono::milliseconds(10), .name = "default"});
  return *pool;
}

}  // namespace weft
