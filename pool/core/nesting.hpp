// The interface through which a pool's core calls its parent and its sub-pools.
#pragma once

#include <array>
#include <new>
#include <system_error>
#include <weft/pool_options.hpp>

#include "pool/core/effects.hpp"

namespace weft::pool {

// The folder nested/ implements this interface, which is the core's only dependency on sub-pools.
class Nesting {
 public:
  virtual ~Nesting() = default;

  // The core calls begin() once, to register the pool with its parent. The core's destructor calls
  // end(), after the pool is closed and joined.
  virtual void begin() noexcept = 0;
  virtual void end() noexcept = 0;
  // Requests a worker from the sub-pool's parent; see nested/sub_pool.cpp. The caller must hold the
  // lock; the function releases the lock temporarily.
  [[nodiscard]] virtual std::error_code ask_for_worker(OnFull when_full,
                                                       Effects& effects) noexcept = 0;
  // Closes all sub-pools, including sub-pools made during the call, and locks the pool. Unless
  // `mode` is Close::drain, removes sub-pools without tasks from the pool's wait queue.
  virtual void lock_with_sub_pools_closed(Close mode) noexcept = 0;
};

// Stores a pool's Nesting inside the pool, because a separate allocation would add 2 % to the time
// to create and destroy a pool.
class NestingPlace {
 public:
  NestingPlace() noexcept = default;
  NestingPlace(const NestingPlace&) = delete;
  NestingPlace& operator=(const NestingPlace&) = delete;
  ~NestingPlace() {
    if (nesting_ != nullptr) nesting_->~Nesting();
  }

  // Makes the Nesting. Must be called exactly once.
  template <class N>
  void make(PoolCore& core) {
    static_assert(sizeof(N) <= sizeof memory_ && alignof(N) <= alignof(void*));
    nesting_ = ::new (static_cast<void*>(memory_.data())) N(core);
  }
  [[nodiscard]] bool is_made() const noexcept { return nesting_ != nullptr; }
  [[nodiscard]] Nesting* operator->() const noexcept { return nesting_; }
  [[nodiscard]] Nesting& operator*() const noexcept { return *nesting_; }

 private:
  std::array<void*, 5> memory_;
  Nesting* nesting_ = nullptr;
};

}  // namespace weft::pool
