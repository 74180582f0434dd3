// Makes blocking calls on helper threads, so that they do not block workers.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <future>
#include <type_traits>
#include <weft/detail/blocking.hpp>
#include <weft/detail/context_node.hpp>
#include <weft/detail/join_state.hpp>
#include <weft/detail/wrong_callable.hpp>
#include <weft/this_fiber.hpp>

namespace weft {

namespace detail {

// One call of `callable` and its outcome. `state` stores the outcome, but wakes no fiber. The
// helper wakes the calling fiber through `waker`.
template <class F>
struct BlockingCallOf : BlockingCall {
  explicit BlockingCallOf(F& function) noexcept
      : BlockingCall{[](BlockingCall& self) noexcept {
          auto& call = static_cast<BlockingCallOf&>(self);
          const ContextNode carried(call.context);
          call.state.store_outcome(call.callable);
        }},
        callable(function) {}

  F& callable;
  const Context* const context = ContextNode::current();  // The context of the calling fiber.
  JoinState<std::invoke_result_t<F&>> state;
};

}  // namespace detail

// Runs `callable` on a helper thread while the calling fiber is parked, and returns its result. Use
// it for calls that would block a worker: file access, name resolution, other libraries' locks,
// long computations. On a plain thread, blocking() calls `callable` directly. The helper is a plain
// thread, so `callable` may use weft as plain threads do. `callable` has the caller's context.
// The runtime starts helpers on demand, up to RuntimeOptions::max_blocking_threads, and ends them
// after 10 s without work. At this limit, further calls wait; therefore `callable` must not wait
// for later calls. A fiber cannot abandon the call, which uses the fiber's stack. A round trip
// takes 10 to 30 us, mostly for two wakeups (bench/blocking_bench, two busy virtual processors).
// Context: fibers and plain threads; parks a fiber.
// Throws: what `callable` and moves of its result throw; std::system_error if there is no helper
// thread and none can start.
// Ordering: the call synchronizes with the start of `callable`. The end of `callable` synchronizes
// with the return of the call.
template <std::invocable F>
auto blocking(F&& callable) -> std::invoke_result_t<F&> {
  if (!this_fiber::is_fiber()) return callable();
  detail::BlockingCallOf<std::remove_reference_t<F>> call(callable);
  detail::make_on_helper(call);
  return call.state.take();
}

// Waits for `future` as get() does, but parks the calling fiber. While the future is not ready, a
// fiber's wait occupies a helper thread of blocking().
// Context: fibers and plain threads; parks a fiber.
// Throws: the exception that the future holds, and std::system_error as blocking() does.
// Ordering: as for future.get().
template <class T>
T await_future(std::future<T> future) {
  if (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    blocking([&future] { future.wait(); });
  }
  return future.get();
}

// This overload exists only for its error message.
template <class F>
requires(!std::invocable<F>) void blocking(F&&) {
  static_assert(detail::kFits<F>, "weft::blocking: the callable must take no arguments");
}

}  // namespace weft
