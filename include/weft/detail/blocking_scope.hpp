// Gives back the slot of a pool while its task waits.
#pragma once

namespace weft {

class FiberPool;

namespace pool {
class PoolCore;
class Registration;
}  // namespace pool

namespace detail {

// A caller that is about to park creates it. While it exists, the slots of the caller's task, in
// its pool and all pools around it, are released if the outermost of these is `root`. The
// destructor waits for these slots. The root is compared but not dereferenced, so it may have been
// destroyed if it does not match. Null: nothing happens. (Compare ForkJoinPool's ManagedBlocker.)
class BlockingScope {
 public:
  explicit BlockingScope(const pool::PoolCore* root) noexcept;
  // For a caller that has already looked up its registration.
  BlockingScope(const pool::PoolCore* root, pool::Registration* of_caller) noexcept;
  // For a caller that waits for a task of `pool`. Null: nothing happens.
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
