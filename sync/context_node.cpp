#include <weft/context.hpp>
#include <weft/detail/context_node.hpp>
#include <weft/detail/context_share.hpp>

namespace weft::detail {

Atomic<bool> contexts_are_used{false};

ContextNode::ContextNode(const Context* context) noexcept
    : LocalScope(kContextKey), context_(context) {
  // A load comes before the store, so that threads do not pass the cache line around.
  if (context != nullptr && !may_have_one()) contexts_are_used.store(true, relaxed);
}

ContextNode::ContextNode(Make make, void* maker) noexcept
    : LocalScope(kContextKey), context_(nullptr), make_(make), maker_(maker) {
  if (!may_have_one()) contexts_are_used.store(true, relaxed);
}

const Context* ContextNode::current() noexcept {
  const LocalScope* const node = innermost(kContextKey);
  if (node == nullptr) return nullptr;
  const auto& self = static_cast<const ContextNode&>(*node);
  return self.make_ == nullptr ? self.context_ : self.make_(self.maker_);
}

ContextShare ContextShare::of_caller() noexcept {
  const Context* const context = ContextNode::current();
  return context == nullptr ? ContextShare() : ContextShare(context->core());
}

}  // namespace weft::detail
