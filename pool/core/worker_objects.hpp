// The FiberLocal values that tasks create on the fiber of their worker.
#pragma once

#include <weft/detail/local_node.hpp>

namespace weft::pool {

// The FiberLocal values that tasks have created on the fiber of a worker, such as the objects of
// per_worker(). A retired worker counts as live until it has destroyed the values. The capacity
// therefore bounds the number of workers with such values. However, a worker stops counting as live
// before the destructor of such a value waits for the worker's own pool. Only the worker calls the
// functions of this class, except empty(). While the worker is idle, other threads call empty()
// under the pool's lock.
class WorkerObjects {
 public:
  // Makes an object that is always empty.
  WorkerObjects() noexcept = default;
  // `locals` is the fiber's list of FiberLocals; the worker's objects are the nodes before `end`.
  WorkerObjects(detail::LocalNode*& locals, const detail::LocalNode* end) noexcept
      : locals_(&locals), end_(end) {}

  [[nodiscard]] bool empty() const noexcept { return locals_ == nullptr || *locals_ == end_; }
  // Runs user-defined destructors, which may park the fiber.
  void destroy() noexcept {
    is_clearing_ = true;
    while (!empty()) {
      detail::LocalNode* const newest = *locals_;
      *locals_ = newest->next;
      newest->destroy(newest);
    }
    is_clearing_ = false;
  }
  // Returns whether destroy() is running and the worker still counts as live.
  [[nodiscard]] bool is_clearing() const noexcept { return is_clearing_ && has_place_; }
  [[nodiscard]] bool has_place() const noexcept { return has_place_; }
  void give_place_up() noexcept { has_place_ = false; }

 private:
  detail::LocalNode** locals_ = nullptr;
  const detail::LocalNode* end_ = nullptr;
  bool is_clearing_ = false;
  bool has_place_ = true;
};

}  // namespace weft::pool
