#include <weft/detail/behalf_scope.hpp>

#include <weft/detail/local_node.hpp>

namespace weft::detail {

namespace {

// Made at first use, because a pool may be used before this file's variables exist.
std::uint64_t key_of_scopes() noexcept {
  static const std::uint64_t key = new_local_key();
  return key;
}

}  // namespace

std::uint64_t key_of_pool_tasks() noexcept {
  static const std::uint64_t key = new_local_key();
  return key;
}

BehalfScope::BehalfScope(detail::LocalNode& task) noexcept
    : LocalScope(key_of_scopes()), task_(task) {}

// A fiber that has a scope runs no task as a worker. It may run a task in a submit() within the
// scope; the node of that task is newer.
detail::LocalNode* BehalfScope::task_of_caller() noexcept {
  detail::LocalNode* const first = locals();
  if (first == nullptr) return nullptr;
  if (detail::LocalNode* const task = find_newest(first, key_of_pool_tasks())) return task;
  const LocalScope* const scope = innermost(key_of_scopes());
  return scope == nullptr ? nullptr : &static_cast<const BehalfScope*>(scope)->task_;
}

}  // namespace weft::detail
