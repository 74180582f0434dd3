// Holds a callable of any type, even a move-only type.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace weft::detail {

template <class Signature>
class SharedFunction;

// Works like std::function, but also takes move-only callables. Copies of a SharedFunction share a
// move-only callable. A type converts to a SharedFunction only if it can be called with
// `Arguments`.
// Context: plain value.
// Throws: std::bad_alloc, and what a copy or move of the callable throws; a call throws what the
// callable throws, or std::bad_function_call if the function is empty.
template <class R, class... Arguments>
class SharedFunction<R(Arguments...)> {
 public:
  // Makes an empty function.
  SharedFunction() noexcept = default;
  SharedFunction(std::nullptr_t) noexcept {
  }  // NOLINT(google-explicit-constructor): as no callable.
  // Takes the callable. Makes an empty function from an empty std::function.
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, SharedFunction> &&
           std::is_invocable_r_v<R, std::decay_t<F>&, Arguments...>)
      SharedFunction(F&& callable)  // NOLINT(google-explicit-constructor): a callable is one.
      : function_(copyable(std::forward<F>(callable))) {}

  // Returns whether there is a callable.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(function_); }
  // Calls the callable.
  R operator()(Arguments... arguments) const {
    return function_(std::forward<Arguments>(arguments)...);
  }

 private:
  template <class F>
  [[nodiscard]] static decltype(auto) copyable(F&& callable) {
    using Callable = std::decay_t<F>;
    if constexpr (std::copy_constructible<Callable>) {
      return std::forward<F>(callable);
    } else {
      return [shared = std::make_shared<Callable>(std::forward<F>(callable))](
                 Arguments... arguments) -> R {
        return static_cast<R>(std::invoke(*shared, std::forward<Arguments>(arguments)...));
      };
    }
  }

  std::function<R(Arguments...)> function_;
};

}  // namespace weft::detail
