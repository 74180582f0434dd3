#include <chrono>
#include <memory>
#include <weft/detail/first_use.hpp>
#include <weft/pool.hpp>

namespace weft {

namespace {

constinit detail::FirstUse<FiberPool> own_default_pool;

}  // namespace

// The pool is never destroyed, because tasks may be submitted until the process ends. Its idle
// workers end soon, so an idle pool soon has no fibers. A runtime that ends must wait for all
// its fibers, so it retires the pool's idle workers at once.
FiberPool& default_pool() {
  return own_default_pool.get([] {
    return std::make_unique<FiberPool>(
        PoolOptions{.idle_timeout = std::chrono::milliseconds(10), .name = "default"});
  });
}

}  // namespace weft
