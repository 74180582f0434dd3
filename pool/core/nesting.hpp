// The questions of a pool's core to the pools around it and in it.
#pragma once

#include <system_error>
#include <weft/pool_options.hpp>

#include "pool/core/effects.hpp"

namespace weft::pool {

// Implemented by nested/; the core knows no more of sub-pools than this.
class Nesting {
 public:
  virtual ~Nesting() = default;

  // Of a sub-pool. Requires the lock; releases it meanwhile. Asks the parent for a worker; see
  // nested/sub_pool.cpp.
  [[nodiscard]] virtual std::error_code ask_for_worker(OnFull when_full,
                                                       Effects& effects) noexcept = 0;
  // Takes the lock, with all its sub-pools closed: one that is made meanwhile is closed from
  // the start. None is in the pool's wait queue any more for nothing.
  virtual void lock_with_sub_pools_closed(Close mode) noexcept = 0;
};

}  // namespace weft::pool
