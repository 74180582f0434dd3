// Passes stop requests to the tasks of a group through the group's context. While a task that takes
// that context or a token runs, the pool's stop requests cancel the context. A task that takes a
// token and has options has its own stop source, which also receives the options' stop requests.
#pragma once

#include <concepts>
#include <functional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <weft/accepted.hpp>
#include <weft/context.hpp>
#include <weft/detail/give_back.hpp>
#include <weft/detail/group_pool.hpp>
#include <weft/detail/stop_registration.hpp>

namespace weft::detail {

template <class F>
inline constexpr bool kTakesContext = std::invocable<F&, Context&>;
template <class F>
inline constexpr bool kTakesTokenOnly = !kTakesContext<F> && std::invocable<F&, std::stop_token>;
template <class F>
inline constexpr bool kHearsOfStop = kTakesContext<F> || kTakesTokenOnly<F>;
// A callable that a group can run.
template <class F>
concept GroupTask = std::invocable < std::decay_t<F>
& > || kHearsOfStop<std::decay_t<F>>;

// Calls `task` with the group's context, a stop_token or no argument, as its signature requires.
template <class F>
decltype(auto) invoke_in(Context& context, F& task) {
  if constexpr (kTakesContext<F>) {
    return std::invoke(task, context);
  } else if constexpr (kTakesTokenOnly<F>) {
    return std::invoke(task, context.token());
  } else {
    return std::invoke(task);
  }
}
template <class F>
using ResultIn = decltype(invoke_in(std::declval<Context&>(), std::declval<std::decay_t<F>&>()));

// A callback that cancels a context.
struct CancelContext {
  Context* context;
  void operator()() const noexcept { context->cancel(); }
};

// While this object exists, a stop request to the pool cancels the group's context. For tasks that
// take neither a context nor a token, the object does nothing.
template <class F>
class PoolStopScope {
 public:
  PoolStopScope(const GroupPool& pool, Context& context) noexcept {
    if constexpr (kHearsOfStop<F>) {
      if (pool) registration_.add(pool.stop_token(), {&context});
    }
  }

 private:
  struct Nothing {};
  [[no_unique_address]] std::conditional_t<kHearsOfStop<F>, StopRegistration<CancelContext>,
                                           Nothing>
      registration_;
};

// A task with its own stop source, to which the task forwards stop requests of the group.
template <class F>
struct TaskWithSource {
  using Shown = F;
  F callable;
  std::stop_source own;
  decltype(auto) operator()(std::stop_token of_group) {
    StopRegistration<RequestStop> registration;
    registration.add(of_group, {own});
    return std::invoke(callable, own.get_token());
  }
};

// Calls `submit(task, source)`. If the task takes a token, `source` is the task's own stop source.
// If the task is refused, it is moved back to `task`.
template <class F, class Submit>
Accepted submit_with_source(F&& task, Submit submit) {
  if constexpr (kTakesTokenOnly<std::decay_t<F>>) {
    const std::stop_source own;
    TaskWithSource<std::decay_t<F>> stoppable{std::forward<F>(task), own};
    const Accepted accepted = submit(std::move(stoppable), own);
    if (!accepted) give_back<F>(task, stoppable.callable);
    return accepted;
  } else {
    return submit(std::forward<F>(task), std::stop_source(std::nostopstate));
  }
}

}  // namespace weft::detail
