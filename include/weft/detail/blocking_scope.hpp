// Gives back the slot of a pool while its task waits.
#pragma once

namespace weft {

class FiberPool;

namespace pool {
class PoolCore;
class Registration;
}  // namespace pool

namespace detail {

// A caller that is about to park creates it. While it exists, the slot of the caller's task is
// released, if the task runs in a pool of `root`, the outermost pool around it. So are the slots of
// the pools between. The destructor waits for the slots. The root is compared but not dereferenced,
// so it may have been destroyed if it does not match. Null: nothing happens. (Compare
// ForkJoinPool's ManagedBlocker.)
class BlockingScope {
 public:
  explicit BlockingScope(const pool::PoolCore* root) noexcept;
  // For a caller that has already looked up its registration.
  BlockingScope(const pool::PoolCore* root, pool::Registration* of_caller) noexcept;
  // For a wait for a task of `pool`, unless that is null.
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
