// Releases a task's slot in its pool while the task waits.
#pragma once

namespace weft {

class FiberPool;

namespace pool {
class PoolCore;
class Registration;
}  // namespace pool

namespace detail {

// A caller creates a BlockingScope before it parks. The constructor releases the slots of the
// caller's task in its pool and all enclosing pools, if the outermost of these pools is `root`. The
// destructor waits until the task has these slots again. The constructor compares `root` but never
// dereferences it, so a pool that does not match may already be destroyed. A null root has no
// effect. (Compare Java's ForkJoinPool.ManagedBlocker.)
class BlockingScope {
 public:
  explicit BlockingScope(const pool::PoolCore* root) noexcept;
  // Constructs a scope for a caller that has already looked up its registration.
  BlockingScope(const pool::PoolCore* root, pool::Registration* of_caller) noexcept;
  // Constructs a scope for a caller that waits for a task of `pool`. A null pool has no effect.
  explicit BlockingScope(const FiberPool* pool) noexcept;
  ~BlockingScope();
  BlockingScope(const BlockingScope&) = delete;
  BlockingScope& operator=(const BlockingScope&) = delete;

  // Returns whether any slot was released.
  [[nodiscard]] bool is_made() const noexcept { return slots_ != nullptr; }

 private:
  pool::Registration* const slots_;
};

}  // namespace detail
}  // namespace weft
