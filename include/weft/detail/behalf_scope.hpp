// Marks fibers that do a part of another caller's task.
#pragma once

#include <cstdint>
#include <weft/detail/local_node.hpp>
#include <weft/detail/local_scope.hpp>

namespace weft::detail {

// The key of the nodes by which pools find the task that their caller runs. A node lives at least
// as long as that task.
[[nodiscard]] std::uint64_t key_of_pool_tasks() noexcept;

// While it lives, the caller runs steps of a loop on behalf of a task that waits for the loop: the
// task then counts as waiting when a step waits for the pool. Never parks, and allocates nothing.
class BehalfScope : private LocalScope {
 public:
  // The node of the task that the caller runs, or runs steps for; null if there is none.
  [[nodiscard]] static detail::LocalNode* task_of_caller() noexcept;
  // `task` is the node of a task that cannot end meanwhile.
  explicit BehalfScope(detail::LocalNode& task) noexcept;

 private:
  detail::LocalNode& task_;
};

}  // namespace weft::detail
