#include <weft/detail/local_scope.hpp>

#include <weft/detail/local_node.hpp>

namespace weft::detail {

namespace {

// The list does not own a scope's memory.
void leave_alone(LocalNode*) noexcept {}

}  // namespace

LocalScope::LocalScope(std::uint64_t of_key) noexcept : LocalNode{locals(), of_key, &leave_alone} {
  locals() = this;
}

// Values made in the scope precede its node in the list.
LocalScope::~LocalScope() {
  LocalNode** link = &locals();
  while (*link != this) link = &(*link)->next;
  *link = next;
}

const LocalScope* LocalScope::innermost(std::uint64_t of_key) noexcept {
  return static_cast<const LocalScope*>(find_newest(locals(), of_key));
}

}  // namespace weft::detail
