// Marks fibers that run the steps of a parallel loop for a task that waits for the loop.
#pragma once

#include <weft/detail/local_node.hpp>
#include <weft/detail/local_scope.hpp>

namespace weft::detail {

// Marks the caller as running steps of a parallel loop while `task` waits for that loop. If a step
// waits for the pool of `task`, `task` gives its slot back. A scope never parks or allocates.
class BehalfScope : private LocalScope {
 public:
  // Returns the node of the caller's pool task. If the caller has no pool task, returns the task of
  // its innermost BehalfScope, or null if there is no such scope.
  [[nodiscard]] static detail::LocalNode* task_of_caller() noexcept;
  // `task` is the node of a task that cannot end before this scope.
  explicit BehalfScope(detail::LocalNode& task) noexcept;

 private:
  detail::LocalNode& task_;
};

}  // namespace weft::detail
