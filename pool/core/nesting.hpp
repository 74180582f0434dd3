// The questions of a pool's core to the pools around it and in it.
#pragma once

#include <system_error>
#include <weft/detail/waiter.hpp>
#include <weft/pool_options.hpp>

namespace weft::pool {

// Implemented by nested/; the core knows no more of other pools than this. The first ones are
// called of a sub-pool only.
class Nesting {
 public:
  virtual ~Nesting() = default;

  // Requires the sub-pool's lock; releases it meanwhile. Asks the parent for a worker; see
  // nested/sub_pool.cpp.
  [[nodiscard]] virtual std::error_code ask_for_worker(OnFull when_full) noexcept = 0;
  // The locks of all parents, outermost first; before that of the sub-pool.
  virtual void lock_parents() noexcept = 0;
  virtual void unlock_parents() noexcept = 0;
  // Requires them.
  [[nodiscard]] virtual bool parent_is_closing() const noexcept = 0;
  // Without any lock.
  [[nodiscard]] virtual std::size_t available_in_parents() const noexcept = 0;

  // Takes the pool's lock, with all its sub-pools closed: one that is made meanwhile is closed from
  // the start.
  virtual void lock_with_sub_pools_closed(Close mode) noexcept = 0;
  // Requires the pool's lock. Takes the sub-pools out of its wait queue, and returns those that go
  // on waiting there.
  [[nodiscard]] virtual detail::WaitList take_waiting_sub_pools(Close mode) noexcept = 0;
};

}  // namespace weft::pool
