// Runs the task of a fiber in the context of the code that spawned the fiber.
#pragma once

#include <optional>
#include <utility>
#include <weft/detail/context_node.hpp>
#include <weft/detail/context_share.hpp>
#include <weft/detail/join_state.hpp>
#include <weft/detail/task.hpp>

namespace weft::detail {

// A joinable task that runs in the context of the code that spawned the task. The task releases its
// share of the context before a joiner continues.
template <class Callable, class Result>
struct CarryingTask {
  using Shown = Callable;

  [[nodiscard]] const void* join_target() const noexcept { return state; }
  void operator()() {
    {
      const ContextNode carried(context.context());
      state->store_outcome(*callable);
      callable.reset();
    }
    context.reset();
    state->end_fiber();
  }

  JoinState<Result>* state;
  std::optional<Callable> callable;
  ContextShare context;
};

// Returns the task of a joinable fiber, for a caller that may have a context. Not inlined, to keep
// the code of each spawn small.
template <class Callable, class Result, class F>
[[nodiscard, gnu::noinline]] Task joinable_task_in_context(JoinState<Result>* state, F&& callable) {
  ContextShare context = ContextShare::of_caller();
  if (!context)
    return Task(std::in_place_type<JoinableTask<Callable, Result>>, state,
                std::forward<F>(callable));
  return Task(std::in_place_type<CarryingTask<Callable, Result>>, state, std::forward<F>(callable),
              std::move(context));
}

}  // namespace weft::detail
