// Giving the slot of a pool back around a wait.
#pragma once

namespace weft {

class FiberPool;

namespace pool {
class PoolCore;
class Registration;
}  // namespace pool

namespace detail {

// A caller that is about to park makes it. While it lives, the slot of the caller's task is
// released, if the task runs in a pool of `root`, the outermost pool around it. So are the slots of
// the pools between. Destroyed, it waits for the slots again. The root is compared and not
// followed, so it may be gone if the answer is no. Null: nothing happens. (ForkJoinPool's
// ManagedBlocker.)
class BlockingScope {
 public:
  explicit BlockingScope(const pool::PoolCore* root) noexcept;
  // By one who has looked for the caller's registration already.
  BlockingScope(const pool::PoolCore* root, pool::Registration* of_caller) noexcept;
  // Around a wait for a task of `pool`, unless that is null.
  explicit BlockingScope(const FiberPool* pool) noexcept;
  ~BlockingScope();
  BlockingScope(const BlockingScope&) = delete;
  BlockingScope& operator=(const BlockingScope&) = delete;

  // Returns whether there was anything to release.
  [[nodiscard]] bool is_made() const noexcept { return slots_ != nullptr; }

 private:
  pool::Registration* const slots_;
};

}  // namespace detail
}  // namespace weft
