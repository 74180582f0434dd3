// A pool of fibers that all run the same function.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/pool_function.hpp>
#include <weft/pool.hpp>

namespace weft {

// Makes a FunctionPool create an object for each of its workers.
// Context: plain value.
// Throws: whatever the move constructor of `Make` throws.
template <std::invocable Make>
class PerWorker {
 public:
  // Stores `make`, which each worker calls for its first task. See per_worker().
  explicit PerWorker(Make make) : make_(std::move(make)) {}

 private:
  template <class In, class Out>
  friend class FunctionPool;
  Make make_;
};
// Makes each worker of a FunctionPool call `make`, and then run its tasks with the new object.
// Context: plain value.
// Throws: whatever the move constructor of `Make` throws.
template <std::invocable Make>
[[nodiscard]] PerWorker<Make> per_worker(Make make) {
  return PerWorker<Make>(std::move(make));
}

// A FiberPool whose tasks all call one function, so a task stores only the argument. A task without
// options or a handle needs no allocation if In is at most 24 bytes and its move cannot throw.
//
//   FunctionPool<Request, Response> handlers([](Request request) { return answer(request); });
//   FunctionPool<Page, Text> parsers(per_worker([] { return Parser(); }), {.capacity = 4});
//   const Text text = parsers.process(page);
//
// The function takes an In and, optionally, a std::stop_token. The token reports stop requests from
// close(Close::cancel), PoolTask::cancel(), SubmitOptions::stop and timeout, and the `until` of
// process_until(). Several workers may call the function at once. A per_worker() object serves one
// task at a time. A worker creates its object for its first task, and destroys it when the worker
// retires. The capacity thus limits the number of objects, but an object does not count while its
// task or destructor waits for the pool. If creating the object throws, the task gets the
// exception, and the worker's next task creates the object. A task that its submitter runs
// (OnFull::caller_runs) gets its own object. A FunctionPool otherwise behaves like a FiberPool.
// Context, Throws, Ordering: as for FiberPool.
template <class In, class Out = void>
class FunctionPool {
  static_assert(std::is_object_v<In>, "the argument is kept until its task runs");
  static_assert(std::is_void_v<Out> || std::is_object_v<Out>, "the result outlives its task");

 public:
  // The result of process_until(). If a limit ended the wait, it is empty, or false if Out is void.
  using InTime = detail::InTime<Out>;

  // Creates a pool that calls `function`. per_worker() with a parent throws std::invalid_argument.
  // Throws: what FiberPool() or moving `function` throws; std::invalid_argument if it is empty.
  template <detail::FunctionFor<In, Out> F>
  explicit FunctionPool(F function, PoolOptions options = {})
      : function_(std::make_unique<detail::OneFunction<F, In, Out>>(checked(std::move(function)))),
        pool_(std::move(options)) {}
  template <class Make>
  requires detail::FunctionFor<std::invoke_result_t<Make&>, In, Out>
  explicit FunctionPool(PerWorker<Make> workers, PoolOptions options = {})
      : function_(std::make_unique<detail::FunctionPerWorker<Make, In, Out>>(
            checked(std::move(workers.make_)))),
        pool_(with_own_workers(std::move(options))) {}
  // Calls close(Close::drain), then join(), which parks.
  ~FunctionPool() {
    pool_.close(Close::drain);
    join();
  }
  FunctionPool(const FunctionPool&) = delete;
  FunctionPool& operator=(const FunctionPool&) = delete;

  // Submits a call of the function with `argument`, as FiberPool::submit() does. If the call is
  // refused, `argument` is unchanged, unless its move may throw, or it is an rvalue of a type other
  // than In. Like invoke(), each function below corresponds to a function of FiberPool.
  template <detail::ArgumentFor<In> A = In>
  Accepted invoke(A&& argument) {
    return offer<Call>(std::forward<A>(argument),
                       [&](auto& call) { return pool_.submit(std::move(call)); });
  }
  template <detail::ArgumentFor<In> A = In>
  Accepted invoke(const SubmitOptions& options, A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.submit(options, std::move(call)); });
  }
  // Corresponds to FiberPool::try_submit(); does not park.
  template <detail::ArgumentFor<In> A = In>
  Accepted try_invoke(A&& argument) {
    return offer<Call>(std::forward<A>(argument),
                       [&](auto& call) { return pool_.try_submit(std::move(call)); });
  }
  template <detail::ArgumentFor<In> A = In>
  Accepted try_invoke(const SubmitOptions& options, A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.try_submit(options, std::move(call)); });
  }
  // Corresponds to FiberPool::submit_until(): parks until there is room or `until` ends the wait.
  template <detail::ArgumentFor<In> A = In>
  Accepted invoke_until(const Until& until, A&& argument) {
    return offer<Call>(std::forward<A>(argument),
                       [&](auto& call) { return pool_.submit_until(until, std::move(call)); });
  }
  template <detail::ArgumentFor<In> A = In>
  Accepted invoke_until(const SubmitOptions& options, const Until& until, A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.submit_until(options, until, std::move(call)); });
  }
  // Corresponds to FiberPool::run(): parks until the function has returned or thrown.
  template <detail::ArgumentFor<In> A = In>
  Out process(A&& argument) {
    return offer<Call>(std::forward<A>(argument), [&](Call& call) { return pool_.run(call); });
  }
  template <detail::ArgumentFor<In> A = In>
  Out process(const SubmitOptions& options, A&& argument) {
    return async(options, std::forward<A>(argument)).get();
  }
  // Corresponds to FiberPool::run_until(). If `until` ended the wait, returns an empty optional, or
  // false if Out is void. In that case, the pool drops a call that has not begun. A call that has
  // begun receives a stop request, and keeps its worker until it returns.
  template <detail::ArgumentFor<In> A = In>
  [[nodiscard]] InTime process_until(const Until& until, A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.run_until(until, std::move(call)); });
  }
  template <detail::ArgumentFor<In> A = In>
  [[nodiscard]] InTime process_until(const SubmitOptions& options, const Until& until,
                                     A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.run_until(options, until, std::move(call)); });
  }
  // Corresponds to FiberPool::async(); PoolTask::get() returns the result.
  template <detail::ArgumentFor<In> A = In>
  [[nodiscard]] PoolTask<Out> async(A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.async(std::move(call)); });
  }
  template <detail::ArgumentFor<In> A = In>
  [[nodiscard]] PoolTask<Out> async(const SubmitOptions& options, A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.async(options, std::move(call)); });
  }
  // Corresponds to FiberPool::async_until(): parks until there is room or `until` ends the wait.
  template <detail::ArgumentFor<In> A = In>
  [[nodiscard]] PoolTask<Out> async_until(const Until& until, A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.async_until(until, std::move(call)); });
  }
  template <detail::ArgumentFor<In> A = In>
  [[nodiscard]] PoolTask<Out> async_until(const SubmitOptions& options, const Until& until,
                                          A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.async_until(options, until, std::move(call)); });
  }
  // Corresponds to FiberPool::try_async(): does not park; returns a refusal as an error.
  template <detail::ArgumentFor<In> A = In>
  Result<PoolTask<Out>> try_async(A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.try_async(std::move(call)); });
  }
  template <detail::ArgumentFor<In> A = In>
  Result<PoolTask<Out>> try_async(const SubmitOptions& options, A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.try_async(options, std::move(call)); });
  }

  // Returns the underlying pool, for example to resize, pause or close it.
  [[nodiscard]] FiberPool& pool() noexcept { return pool_; }
  // Joins the pool as FiberPool::join() does, and waits until the workers' objects are destroyed.
  void join() {
    pool_.join();
    function_->wait_for_objects();
  }

 private:
  using Function = detail::PoolFunction<In, Out>;

  // The worker calls this function when a call begins, so a queued call holds no token.
  [[nodiscard]] std::stop_token token_for_call() const noexcept {
    return function_->takes_stop() ? pool_.stop_token() : std::stop_token();
  }

  struct Call {
    FunctionPool* pool;
    In argument;
    Out operator()() { return pool->function_->call(std::move(argument), pool->token_for_call()); }
  };

  // A call that receives its task's token, which reports stop requests for this task.
  struct StoppableCall {
    FunctionPool* pool;
    In argument;
    Out operator()(const std::stop_token& token) {
      return pool->function_->call(std::move(argument), token);
    }
  };

  // Passes a call to `use`. An rvalue `argument` is moved into the call; if `use` refuses the call,
  // the value is moved back to `argument`.
  template <class C, class A, class Use>
  auto offer(A&& argument, Use use) {
    std::optional<detail::Submitting> scope;
    if (const void* const objects = function_->objects()) scope.emplace(objects);
    C call{this, In(std::forward<A>(argument))};
    const detail::GiveBack<A, In> on_exit{argument, call.argument};
    return use(call);
  }
  // Does the same as offer(); if the function takes a token, the call can receive a stop request.
  template <class A, class Use>
  auto start(A&& argument, Use use) {
    if (function_->takes_stop()) return offer<StoppableCall>(std::forward<A>(argument), use);
    return offer<Call>(std::forward<A>(argument), use);
  }

  template <class F>
  static F&& checked(F&& function) {
    if (!detail::is_empty_callable(function)) return std::move(function);
    WEFT_THROW(std::invalid_argument(
        "weft::FunctionPool: the function is empty, a null pointer or an empty std::function"));
  }
  static PoolOptions with_own_workers(PoolOptions options) {
    if (options.parent == nullptr) return options;
    WEFT_THROW(std::invalid_argument(
        "weft::FunctionPool: a pool with a parent has no workers of its own for per_worker()"));
  }

  const std::unique_ptr<Function> function_;
  FiberPool pool_;  // Destroyed before function_, which its tasks call.
};

}  // namespace weft
