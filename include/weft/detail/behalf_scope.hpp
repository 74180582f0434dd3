// Fibers that do a part of what another caller's task is about.
#pragma once

#include <cstdint>
#include <weft/detail/local_node.hpp>
#include <weft/detail/local_scope.hpp>

namespace weft::detail {

// The key of the nodes by which pools find the task that their caller runs. A node lives at least
// as long as that task.
[[nodiscard]] std::uint64_t key_of_pool_tasks() noexcept;

// While it lives, the caller runs steps of a loop on behalf of the task of a pool that waits for
// the loop: what a step waits for in that pool, the task waits for. Never parks, allocates nothing.
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
