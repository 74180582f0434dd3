// The list of all pools.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string_view>
#include <tuple>
#include <weft/detail/thread_annotations.hpp>
#include <weft/detail/thread_mutex.hpp>

namespace weft::pool {

class PoolCore;

// A pool's place in the list, for as long as this lives. Must be destroyed first: a reader of the
// list calls the pool.
class Listing {
 public:
  // Throws std::system_error, std::bad_alloc.
  explicit Listing(PoolCore& core);
  ~Listing();
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;

  // Distinguishes pools with the same name: the smallest number that was free when this was made.
  [[nodiscard]] unsigned number() const noexcept { return number_; }

  // Calls `visit` for each pool that this process has made, in the order of their creation;
  // meanwhile none is destroyed or made. In the child of a fork, a pool of the parent process may
  // be locked forever. The workers of a simulated process that has ended may have no stacks.
  // `visit` must not park.
  static void visit_all(const std::function<void(PoolCore&)>& visit);

 private:
  static void hold_over_forks();
  // The numbers in use for each name, in each process of a simulation.
  static std::set<std::tuple<std::uint64_t, std::string_view, unsigned>>& taken()
      WEFT_REQUIRES(mutex_);

  // Held briefly, and never over a switch or over another thread's fork.
  static detail::ThreadMutex mutex_;
  static Listing* first_ WEFT_GUARDED_BY(mutex_);
  static Listing* last_ WEFT_GUARDED_BY(mutex_);
  // Counts the forks from the first process to this one.
  static unsigned all_forks_ WEFT_GUARDED_BY(mutex_);

  PoolCore& core_;
  unsigned number_ = 0;  // Starts at 1; is 0 without a name.
  // The number of forks when it was made: it shows whether that was in this process.
  unsigned forks_ = 0;
  const std::uint64_t process_;  // 0 outside of simulations.
  Listing* next_ WEFT_GUARDED_BY(mutex_) = nullptr;
  Listing* previous_ WEFT_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace weft::pool
