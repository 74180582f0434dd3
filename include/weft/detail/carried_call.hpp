// A callable that runs elsewhere while its caller waits for it.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>
#include <weft/detail/context_node.hpp>

namespace weft::detail {

// Calls `callable` in the context of its creator, which must still exist then.
template <class F>
class CarriedCall {
 public:
  explicit CarriedCall(F& callable) noexcept
      : callable_(callable), context_(ContextNode::current()) {}

  template <class... Arguments>
  requires std::invocable<F&, Arguments...> std::invoke_result_t<F&, Arguments...>
  operator()(Arguments&&... arguments) {
    if (context_ == nullptr) return std::invoke(callable_, std::forward<Arguments>(arguments)...);
    const ContextNode carried(context_);
    return std::invoke(callable_, std::forward<Arguments>(arguments)...);
  }

 private:
  F& callable_;
  const Context* const context_;
};

}  // namespace weft::detail
