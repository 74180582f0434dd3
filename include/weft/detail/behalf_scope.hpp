// Marks fibers that run steps for another caller's task.
#pragma once

#include <weft/detail/local_node.hpp>
#include <weft/detail/local_scope.hpp>

namespace weft::detail {

// While a scope exists, the caller runs loop steps for a task that joins the loop. While a step
// waits for the task's pool, the task counts as waiting. The scope never parks or allocates.
class BehalfScope : private LocalScope {
 public:
  // Returns the node of the pool task that the caller runs or for which it runs loop steps, or null
  // if there is no such task.
  [[nodiscard]] static detail::LocalNode* task_of_caller() noexcept;
  // `task` is the node of a task that cannot end before this scope.
  explicit BehalfScope(detail::LocalNode& task) noexcept;

 private:
  detail::LocalNode& task_;
};

}  // namespace weft::detail
