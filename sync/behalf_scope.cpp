#include <weft/detail/behalf_scope.hpp>

#include <weft/detail/local_node.hpp>

namespace weft::detail {

BehalfScope::BehalfScope(detail::LocalNode& task) noexcept : LocalScope(kBehalfKey), task_(task) {}

// A fiber that has a scope runs no task as a worker. It may run a task in a submit() within the
// scope; the node of that task is newer.
detail::LocalNode* BehalfScope::task_of_caller() noexcept {
  detail::LocalNode* const first = locals();
  if (first == nullptr) return nullptr;
  if (detail::LocalNode* const task = find_newest(first, kPoolTaskKey)) return task;
  const LocalScope* const scope = innermost(kBehalfKey);
  return scope == nullptr ? nullptr : &static_cast<const BehalfScope*>(scope)->task_;
}

}  // namespace weft::detail
