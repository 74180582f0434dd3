// What tasks leave on the fiber of their worker.
#pragma once

#include <weft/detail/local_node.hpp>

namespace weft::pool {

// The values of FiberLocals that tasks have made on the fiber of a worker, as the objects of
// per_worker() are. They are destroyed when the worker is retired, and until then the worker counts
// as living. So there are never more of them than the capacity allows, unless a destructor waits
// for the worker's own pool: then the worker gives its place up first. Only the worker calls it;
// but empty() is called with the pool's lock while the worker idles.
class WorkerObjects {
 public:
  // A worker that never has any.
  WorkerObjects() noexcept = default;
  // `locals` is the list of the fiber; what stands before `end` are the objects.
  WorkerObjects(detail::LocalNode*& locals, const detail::LocalNode* end) noexcept
      : locals_(&locals), end_(end) {}

  [[nodiscard]] bool empty() const noexcept { return locals_ == nullptr || *locals_ == end_; }
  // Calls what is the user's. Parks.
  void destroy() noexcept {
    is_clearing_ = true;
    while (!empty()) {
      detail::LocalNode* const newest = *locals_;
      *locals_ = newest->next;
      newest->destroy(newest);
    }
    is_clearing_ = false;
  }
  // Returns whether destroy() is under way, and the worker has its place.
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
