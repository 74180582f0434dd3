// The fibers that only one worker may run.
#pragma once

#include <cstdint>

#include "scheduler/queues/inject_queue.hpp"
#include "scheduler/queues/ready_list.hpp"

namespace weft::scheduler {

// Contains one worker's runnable pinned fibers in FIFO order, and its pinned fibers that wait for a
// stack. Also counts the fibers inside a Pin. Owner: the worker, except for push().
class PinnedQueue {
 public:
  // Any thread may call this function, and must then notify the worker.
  void push(fibers::Fiber& fiber) noexcept { incoming_.push(fiber); }

  // The result may be stale, because other threads push fibers.
  [[nodiscard]] bool empty_hint() const noexcept {
    return ready_.is_empty() && incoming_.empty_hint();
  }
  // Returns the oldest fiber; null if there is none.
  [[nodiscard]] fibers::Fiber* take() noexcept {
    if (ready_.is_empty()) ready_ = incoming_.take_all();
    return ready_.take_first();
  }
  // Every second call prefers the oldest pinned fiber; the other calls prefer the result of `pop`.
  // If the preferred fiber is null, returns the other one.
  template <class Pop>
  [[nodiscard]] fibers::Fiber* take_or(Pop pop) noexcept {
    is_first_ = !is_first_;
    fibers::Fiber* fiber = is_first_ ? take() : pop();
    if (fiber == nullptr) fiber = is_first_ ? pop() : take();
    return fiber;
  }

  // pin() and unpin() count the fibers inside a Pin. A worker stays active while it has such
  // fibers, or fibers in aside().
  void pin() noexcept { ++pins_; }
  void unpin() noexcept { --pins_; }
  [[nodiscard]] bool keeps_worker() const noexcept { return pins_ != 0 || !aside_.is_empty(); }

  // Pinned fibers that wait for a stack.
  [[nodiscard]] Chain& aside() noexcept { return aside_; }

 private:
  InjectQueue incoming_;
  Chain ready_;  // Taken from incoming_.
  Chain aside_;
  std::uint32_t pins_ = 0;
  bool is_first_ = false;
};

}  // namespace weft::scheduler
