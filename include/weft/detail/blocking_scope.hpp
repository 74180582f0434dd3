// Releases a task's slot in its pool while the task waits.
#pragma once

namespace weft {

class FiberPool;

namespace pool {
class PoolCore;
class Registration;
}  // namespace pool

namespace detail {

// A caller creates a BlockingScope before it parks. The scope does nothing unless `root` is the
// outermost pool of the caller's task; `root` may be null or already destroyed. The constructor
// releases the task's slots in its pool and in all enclosing pools. The destructor waits until the
// task has these slots again. (Compare Java's ForkJoinPool.ManagedBlocker.)
class BlockingScope {
 public:
  explicit BlockingScope(const pool::PoolCore* root) noexcept;
  // Constructs a scope for a caller that has already looked up its registration.
  BlockingScope(const pool::PoolCore* root, pool::Registration* of_caller) noexcept;
  // Constructs a scope for a caller that waits until a task of `pool` ends. With a null pool, the
  // scope does nothing.
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
