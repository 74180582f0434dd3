// Marks fibers that do a part of another caller's task.
#pragma once

#include <cstdint>
#include <weft/detail/local_node.hpp>
#include <weft/detail/local_scope.hpp>

namespace weft::detail {

// The key of the nodes by which pools find the task that their caller runs. A node lives at least
// as long as that task.
[[nodiscard]] std::uint64_t key_of_pool_tasks() noexcept;

// While it lives, the caller runs steps of a loop on behalf of a task that waits for the loop. When
// a step waits for the pool, the task counts as waiting. Never parks, and allocates nothing.
class BehalfScope : private LocalScope {
 public:
  // The node of the task that the caller runs, or for which it runs steps; null without a task.
  [[nodiscard]] static detail::LocalNode* task_of_caller() noexcept;
  // `task` is the node of a task that cannot end before this scope.
  explicit BehalfScope(detail::LocalNode& task) noexcept;

 private:
  detail::LocalNode& task_;
};

}  // namespace weft::detail
