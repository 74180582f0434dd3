// Releases a task's slot in its pool while the task waits.
#pragma once

namespace weft {

class FiberPool;

namespace pool {
class PoolCore;
class Registration;
}  // namespace pool

namespace detail {

// A caller creates a BlockingScope before it parks. If `root` is the outermost pool of the caller's
// task, the constructor releases the task's slots in its pool and in all enclosing pools, except
// pools without release_when_blocked. The destructor waits until the task has these slots again. A
// worker that is destroying FiberLocal values leaves `root`. `root` may be null or destroyed.
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

  // Returns whether the caller's task has a slot in a pool whose outermost pool is `root`.
  [[nodiscard]] bool is_made() const noexcept { return slots_ != nullptr; }

 private:
  pool::Registration* const slots_;
};

}  // namespace detail
}  // namespace weft
