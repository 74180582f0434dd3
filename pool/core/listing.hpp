// The list of all pools.
#pragma once

#include <functional>

namespace weft::pool {

class PoolCore;

// A pool's place in the list, for as long as this lives. Its first to end: a reader of the list
// calls the pool.
class Listing {
 public:
  // Throws std::system_error, std::bad_alloc.
  explicit Listing(PoolCore& core);
  ~Listing();
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;

  // Tells apart the pools of one name: the smallest that no other one had when this was made.
  [[nodiscard]] unsigned number() const noexcept { return number_; }

  // Calls `visit` for each pool that this process has made, in that order; none is destroyed
  // meanwhile, and none is made. In the child of a fork, a pool of the parent process may be locked
  // forever. `visit` must not park.
  static void visit_all(const std::function<void(PoolCore&)>& visit);

 private:
  PoolCore& core_;
  unsigned number_ = 0;  // Starts at 1; is 0 without a name.
  unsigned forks_ = 0;   // When it was made: whether in this process.
  Listing* next_ = nullptr;
  Listing* previous_ = nullptr;
};

}  // namespace weft::pool
