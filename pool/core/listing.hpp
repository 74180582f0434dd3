// The list of all pools.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string_view>
#include <tuple>
#include <weft/detail/fork.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/detail/thread_mutex.hpp>

namespace weft::pool {

class PoolCore;

// Keeps a pool in the list while this object exists. The pool must destroy this object before its
// other members, because until then visit_all() may call the pool.
class Listing {
 public:
  // Throws std::system_error or std::bad_alloc.
  explicit Listing(PoolCore& core);
  ~Listing();
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;

  // Returns a number that distinguishes pools with the same name: the smallest number that was free
  // when this object was made.
  [[nodiscard]] unsigned number() const noexcept { return number_; }

  // Calls `visit` for each pool that this process has made, in the order of their creation. During
  // the call, no pool is created or destroyed. Skips pools that were made before a fork, because
  // they may be locked forever in the child. Also skips pools of other simulated processes: if such
  // a process has ended, `visit` might read stacks that no longer exist. `visit` must not park.
  static void visit_all(const std::function<void(PoolCore&)>& visit);

 private:
  // The triples of simulated process, pool name and number that are in use.
  using Taken = std::set<std::tuple<std::uint64_t, std::string_view, unsigned>>;

  static Taken& taken() WEFT_REQUIRES(mutex_);

  // A thread holds the mutex only briefly, and not during a fiber switch. Before a fork, the
  // forking thread locks it, because the child has no other thread that could unlock it.
  static detail::ThreadMutex mutex_;
  static Listing* first_ WEFT_GUARDED_BY(mutex_);
  static Listing* last_ WEFT_GUARDED_BY(mutex_);
  // Null before the first named pool. Never destroyed, because a static pool may still use it.
  static Taken* taken_ WEFT_GUARDED_BY(mutex_);
  static const detail::HeldOverForks<mutex_, detail::ForkHandlers::Locks::outer> held_over_forks_;

  PoolCore& core_;
  unsigned number_ = 0;                          // Starts at 1; 0 if the pool has no name.
  const std::uint32_t forks_ = detail::forks();  // Shows whether this process made the object.
  const std::uint64_t process_;                  // 0 outside of simulations.
  Listing* next_ WEFT_GUARDED_BY(mutex_) = nullptr;
  Listing* previous_ WEFT_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace weft::pool
