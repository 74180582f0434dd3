// Marks fibers that run steps for another caller's task.
#pragma once

#include <cstdint>
#include <weft/detail/local_node.hpp>
#include <weft/detail/local_scope.hpp>

namespace weft::detail {

// Returns the key of the LocalNode by which a pool finds the task that its caller runs. The node
// lives at least as long as that task.
[[nodiscard]] std::uint64_t key_of_pool_tasks() noexcept;

// While a scope exists, the caller runs steps of a loop for a task that waits for the loop. While a
// step waits for the task's pool, the task counts as waiting. The scope never parks or allocates.
class BehalfScope : private LocalScope {
 public:
  // Returns the node of the pool task that the caller runs, or for which it runs steps; otherwise
  // null.
  [[nodiscard]] static detail::LocalNode* task_of_caller() noexcept;
  // `task` is the node of a task that cannot end before this scope.
  explicit BehalfScope(detail::LocalNode& task) noexcept;

 private:
  detail::LocalNode& task_;
};

}  // namespace weft::detail
