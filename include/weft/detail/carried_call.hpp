// Runs callables on other fibers in the context of the code that started the callables.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>
#include <weft/detail/context_node.hpp>
#include <weft/detail/context_share.hpp>

namespace weft::detail {

// Calls `callable` in the context in which this CarriedCall was made; that context must still
// exist.
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

// A callable that runs in the context in which the CarryingCall was made. Keeps that context alive.
template <class F>
struct CarryingCall {
  using Shown = F;  // Dumps and reports show this type instead of the wrapper.

  template <class... Arguments>
  requires std::invocable<F&, Arguments...> std::invoke_result_t<F&, Arguments...>
  operator()(Arguments&&... arguments) {
    const ContextNode carried(context.context());
    return std::invoke(callable, std::forward<Arguments>(arguments)...);
  }

  ContextShare context;
  F callable;
};

}  // namespace weft::detail
