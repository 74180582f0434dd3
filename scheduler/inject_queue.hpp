// Fibers made runnable from outside the workers.
#pragma once

#include <boost/lockfree/queue.hpp>

namespace weft::fibers {
struct Fiber;
}

namespace weft::scheduler {

// A lock-free FIFO for plain threads that spawn or wake, shared by all workers. Unbounded: its
// nodes are recycled and grow with the largest number of fibers that ever waited here.
class InjectQueue {
 public:
  // From any thread. Throws std::bad_alloc; nothing is queued then.
  void push(fibers::Fiber& fiber) {
    if (!queue_.push(&fiber)) throw std::bad_alloc();
  }
  [[nodiscard]] fibers::Fiber* pop() noexcept {
    fibers::Fiber* fiber = nullptr;
    return queue_.pop(fiber) ? fiber : nullptr;
  }
  // May be stale when it returns.
  [[nodiscard]] bool empty_hint() const noexcept { return queue_.empty(); }

 private:
  boost::lockfree::queue<fibers::Fiber*> queue_{1024};
};

}  // namespace weft::scheduler
