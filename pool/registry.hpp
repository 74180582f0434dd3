// Which fibers are workers, and of which pool.
#pragma once

namespace weft::pool {

class PoolCore;

// Registers the calling fiber, for as long as this object lives, as a worker of `core`. It costs
// nothing per task: a worker registers once, and only a task that is about to park asks.
class Registration {
 public:
  explicit Registration(const PoolCore& core) noexcept;
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  friend bool called_from_worker_of(const PoolCore* core) noexcept;

  Registration* next_ = nullptr;
  Registration* previous_ = nullptr;
  const void* const fiber_;
  const PoolCore* const core_;
};

// Whether the caller is a worker of `core`, which is compared and not followed: so it may be
// gone, except if the answer is yes.
[[nodiscard]] bool called_from_worker_of(const PoolCore* core) noexcept;

}  // namespace weft::pool
