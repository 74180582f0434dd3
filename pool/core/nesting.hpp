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

  // From when the core knows its nesting, others may know the pool; until it ends, closed and
  // joined.
  virtual void begin() noexcept = 0;
  virtual void end() noexcept = 0;
  // Asks the sub-pool's parent for a worker; see nested/sub_pool.cpp. Requires the lock; releases
  // it meanwhile.
  [[nodiscard]] virtual std::error_code ask_for_worker(OnFull when_full,
                                                       Effects& effects) noexcept = 0;
  // Takes the lock, with all its sub-pools closed: one that is made meanwhile is closed from
  // the start. None is in the pool's wait queue any more for nothing.
  virtual void lock_with_sub_pools_closed(Close mode) noexcept = 0;
};

}  // namespace weft::pool
