// Calls that block their thread.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <future>
#include <type_traits>
#include <weft/detail/blocking.hpp>
#include <weft/detail/join_state.hpp>
#include <weft/this_fiber.hpp>

namespace weft {

namespace detail {

// A call of `callable` and its outcome. The rendezvous is the fiber's park: of the join state only
// the place for the outcome is used.
template <class F>
struct BlockingCallOf : BlockingCall {
  explicit BlockingCallOf(F& function) noexcept
      : BlockingCall{[](BlockingCall& self) noexcept {
          auto& call = static_cast<BlockingCallOf&>(self);
          call.state.store_outcome(call.callable);
        }},
        callable(function) {}

  F& callable;
  JoinState<std::invoke_result_t<F&>> state;
};

}  // namespace detail

// Runs `callable` on a helper thread while the calling fiber is parked and its worker runs others;
// returns its result or throws its exception. For whatever would keep the worker: files, name
// resolution, locks of other libraries, a database client, a long computation. On a plain thread it
// runs in place. The helper is a plain thread: `callable` may use all of weft, and blocks then.
//
// Helpers belong to the runtime: they are started when needed, up to
// RuntimeOptions::max_blocking_threads, reused, and end after 10 s without work. At the limit calls
// wait for their turn; so calls must not wait for calls that come later. Nothing can end a call
// early: it refers to the caller's stack.
// Throws also std::system_error if there is no helper and the system refuses a thread.
// Synchronizes: what comes before the call with `callable`, and its end with the return.
// A round trip takes 10 to 30 us (bench/blocking_bench, on a busy virtual machine with 2
// processors), nearly all of it the system's waking of two threads: not for what is shorter. Call
// it from fibers and plain threads.
template <std::invocable F>
auto blocking(F&& callable) -> std::invoke_result_t<F&> {
  if (!this_fiber::is_fiber()) return callable();
  detail::BlockingCallOf<std::remove_reference_t<F>> call(callable);
  detail::make_on_helper(call);
  return call.state.take();
}

// As future.get(), but parks the calling fiber. Returns or throws what the future has, and throws
// what blocking() does. A future that is not ready keeps a helper thread waiting, see blocking();
// one that is costs nothing. Call it from fibers and plain threads. Synchronizes as future.get()
// does.
template <class T>
T await_future(std::future<T> future) {
  if (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    blocking([&future] { future.wait(); });
  }
  return future.get();
}

}  // namespace weft
