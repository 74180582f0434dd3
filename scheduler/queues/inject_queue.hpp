// The queue of fibers that threads outside the runtime make runnable.
#pragma once

#include <weft/detail/atomic.hpp>

#include "base/cache_line.hpp"
#include "scheduler/queues/ready_list.hpp"

namespace weft::scheduler {

// Contains the fibers that plain threads, and workers of other runtimes, spawn or wake; all workers
// share it. A push links the fiber in front of earlier fibers by compare-exchange. It therefore
// never allocates, and a wake cannot fail. A worker takes all fibers at once, in the order in which
// they were pushed.
// Order
//   [inject]  push() exchanges newest_ (release) -> take_all() exchanges it (acquire): the worker
//             sees the fields of the fibers.
class InjectQueue {
 public:
  // Any thread may call it.
  void push(fibers::Fiber& fiber) noexcept;
  // Returns all fibers, oldest first.
  [[nodiscard]] Chain take_all() noexcept;
  // The result may be stale.
  [[nodiscard]] bool empty_hint() const noexcept {
    return newest_.load(detail::relaxed) == nullptr;  // Relaxed: a hint.
  }

 private:
  alignas(base::kCacheLine) detail::Atomic<fibers::Fiber*> newest_{nullptr};
};

}  // namespace weft::scheduler
