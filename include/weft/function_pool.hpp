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

// Says that a FunctionPool makes an object for each of its workers; see there. Used by the caller
// that makes the pool; neither parks nor synchronizes. Throws what moving `make` throws.
template <std::invocable Make>
class PerWorker {
 public:
  // `make` is called once by each worker, when it begins. See per_worker().
  explicit PerWorker(Make make) : make_(std::move(make)) {}

 private:
  template <class In, class Out>
  friend class FunctionPool;
  Make make_;
};
// For a FunctionPool's constructor: each of its workers has an object of its own, which `make`
// returns, and calls the function with it. Used by the caller that makes the pool; neither parks
// nor synchronizes. Throws what moving `make` throws.
template <std::invocable Make>
[[nodiscard]] PerWorker<Make> per_worker(Make make) {
  return PerWorker<Make>(std::move(make));
}

// A FiberPool whose function is given once, so that a task is no more than its argument: it costs
// no allocation if an In fits into 56 bytes and is moved without exceptions.
//
//   FunctionPool<Request, Response> handlers([](Request request) { return answer(request); });
//   FunctionPool<Page, Text> parsers(per_worker([] { return Parser(); }), {.capacity = 4});
//   const Text text = parsers.process(page);
//
// The function takes the In, and perhaps a std::stop_token too. Stop is requested by
// close(Close::cancel), and when the waiter for this call gives up. Several workers call the
// function at a time. With a per_worker(), each worker has an object of its own, which only one
// task uses at a time: it is made with the worker's first task and destroyed when the worker is
// retired. The worker counts as living until its destructor has returned, unless this waits for the
// pool itself; so there are no more of these objects than the capacity allows. An exception that
// making it throws is the task's; the next task tries again. A task that OnFull::caller_runs runs
// in its caller has an object for itself. It cannot have a parent. Everything else is as for
// FiberPool: order, slots given back, what is refused and with which code, who may call, and what
// synchronizes.
template <class In, class Out = void>
class FunctionPool {
  static_assert(std::is_object_v<In>, "the argument is kept until its task runs");
  static_assert(std::is_void_v<Out> || std::is_object_v<Out>, "the result outlives its task");

 public:
  // The return value of process_until(): the result, if there was one in time.
  using InTime = detail::InTime<Out>;

  // Throws what FiberPool's does, and std::invalid_argument for an empty function.
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
  // close(Close::drain), then join(), which parks.
  ~FunctionPool() {
    pool_.close(Close::drain);
    join();
  }
  FunctionPool(const FunctionPool&) = delete;
  FunctionPool& operator=(const FunctionPool&) = delete;

  // Each does what the function of FiberPool does that is called so (submit() for invoke(), run()
  // for process()), with a task that calls the function with `argument`. An argument that is
  // refused is where it was before, as it was, unless moving it may throw.
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
  // FiberPool::try_submit() with such a task: never parks.
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
  // FiberPool::submit_until() with such a task: parks for room, until then at most.
  template <detail::ArgumentFor<In> A = In>
  Accepted invoke_until(const Until& until, A&& argument) {
    return offer<Call>(std::forward<A>(argument),
                       [&](auto& call) { return pool_.submit_until(until, std::move(call)); });
  }
  template <detail::ArgumentFor<In> A = In>
  Accepted invoke_until(const Until& until, const SubmitOptions& options, A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.submit_until(until, options, std::move(call)); });
  }
  // FiberPool::run() with such a task: parks until the function has returned, for its result or
  // exception.
  template <detail::ArgumentFor<In> A = In>
  Out process(A&& argument) {
    return offer<Call>(std::forward<A>(argument), [&](Call& call) { return pool_.run(call); });
  }
  template <detail::ArgumentFor<In> A = In>
  Out process(const SubmitOptions& options, A&& argument) {
    return async(options, std::forward<A>(argument)).get();
  }
  // Returns an empty optional, or false if Out is void, if `until` came first. If the function has
  // not begun, it is not called. Otherwise its stop_token requests a stop, and it keeps its worker
  // until it returns.
  template <detail::ArgumentFor<In> A = In>
  [[nodiscard]] InTime process_until(const Until& until, A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.run_until(until, std::move(call)); });
  }
  template <detail::ArgumentFor<In> A = In>
  [[nodiscard]] InTime process_until(const Until& until, const SubmitOptions& options,
                                     A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.run_until(until, options, std::move(call)); });
  }
  // FiberPool::async() with such a task: the result is had by PoolTask::get().
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
  // FiberPool::async_until() with such a task: parks for room, until then at most.
  template <detail::ArgumentFor<In> A = In>
  [[nodiscard]] PoolTask<Out> async_until(const Until& until, A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.async_until(until, std::move(call)); });
  }
  template <detail::ArgumentFor<In> A = In>
  [[nodiscard]] PoolTask<Out> async_until(const Until& until, const SubmitOptions& options,
                                          A&& argument) {
    return start(std::forward<A>(argument),
                 [&](auto& call) { return pool_.async_until(until, options, std::move(call)); });
  }
  // FiberPool::try_async() with such a task: never parks; a refusal is the error that it returns.
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

  // The pool underneath: its size, its pauses, its numbers, its end.
  [[nodiscard]] FiberPool& pool() noexcept { return pool_; }
  // Does the same as FiberPool::join(); the objects of the workers are gone, too, when it returns.
  void join() {
    pool_.join();
    function_->wait_for_objects();
  }

 private:
  using Function = detail::PoolFunction<In, Out>;

  // The worker takes it when a call begins, so that it costs nothing while the call is queued.
  [[nodiscard]] std::stop_token token_for_call() const noexcept {
    return function_->takes_stop() ? pool_.stop_token() : std::stop_token();
  }

  struct Call {
    FunctionPool* pool;
    In argument;
    Out operator()() { return pool->function_->call(std::move(argument), pool->token_for_call()); }
  };

  // The token is that of the task, which its handle may ask to stop.
  struct StoppableCall {
    FunctionPool* pool;
    In argument;
    Out operator()(const std::stop_token& token) {
      return pool->function_->call(std::move(argument), token);
    }
  };

  // Passes a call on to `use`, which may refuse it: its argument goes back then. An accepted
  // argument has been moved from, here as there.
  template <class C, class A, class Use>
  auto offer(A&& argument, Use use) {
    std::optional<detail::Submitting> scope;
    if (const void* const objects = function_->objects()) scope.emplace(objects);
    C call{this, In(std::forward<A>(argument))};
    const detail::GiveBack<A, In> on_exit{argument, call.argument};
    return use(call);
  }
  // The same, with a call that can be asked to stop if the function can.
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
  FiberPool pool_;  // Ends first: its tasks call the function.
};

}  // namespace weft
