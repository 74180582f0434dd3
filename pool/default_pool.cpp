#include <chrono>
#include <memory>
#include <weft/detail/first_use.hpp>
#include <weft/pool.hpp>

namespace weft {

namespace {

constinit detail::FirstUse<FiberPool> own_default_pool;

}  // namespace

// The pool is never destroyed, because tasks may be submitted until the process ends. Idle workers
// end soon, so an idle pool keeps no Runtime busy. When a runtime ends, it waits for all fibers.
// The pool's idle workers are therefore retired at once in this case.
FiberPool& default_pool() {
  return own_default_pool.get([] {
    return std::make_unique<FiberPool>(
        PoolOptions{.idle_timeout = std::chrono::milliseconds(10), .name = "default"});
  });
}

}  // namespace weft
