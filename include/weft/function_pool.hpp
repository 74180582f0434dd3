// A pool of fibers that all run the same function.
#pragma once

#include <chrono>
#include <concepts>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/pool_function.hpp>
#include <weft/pool.hpp>

namespace weft {

// Says that a FunctionPool makes an object for each of its workers; see there.
template <std::invocable Make>
class PerWorker {
 public:
  explicit PerWorker(Make make) : make_(std::move(make)) {}

 private:
  template <class In, class Out>
  friend class FunctionPool;
  Make make_;
};
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
// The function takes the In, and perhaps a std::stop_token too, which is told of a
// close(Close::cancel), and when who waits for this call gives up. It is called by several workers
// at a time. Of a per_worker(), each worker has an object of its own, that only one task uses at a
// time: it is made with the worker's first task and destroyed when the worker is retired. What
// making it throws is the task's exception; the next task tries again. A task that
// OnFull::caller_runs runs in its caller has an object for itself. It cannot have a parent.
// Everything else is as for FiberPool: order, slots given back, what is refused and with which
// code, who may call, and what synchronizes.
template <class In, class Out = void>
class FunctionPool {
  static_assert(std::is_object_v<In>, "the argument is kept until its task runs");
  static_assert(std::is_void_v<Out> || std::is_object_v<Out>, "the result outlives its task");

 public:
  // What process_until() returns: the result, if there was one in time.
  using InTime = std::conditional_t<std::is_void_v<Out>, bool, std::optional<Out>>;

  // Throws what FiberPool's does, and std::invalid_argument for an empty function.
  template <detail::FunctionFor<In, Out> F>
  explicit FunctionPool(F function, PoolOptions options = {})
      : function_(std::make_unique<detail::OneFunction<F, In, Out>>(checked(std::move(function)))),
        waits_for_room_(options.on_full == OnFull::block),
        pool_(std::move(options)) {}
  template <class Make>
  requires detail::FunctionFor<std::invoke_result_t<Make&>, In, Out>
  explicit FunctionPool(PerWorker<Make> workers, PoolOptions options = {})
      : function_(std::make_unique<detail::FunctionPerWorker<Make, In, Out>>(
            checked(std::move(workers.make_)))),
        waits_for_room_(options.on_full == OnFull::block),
        pool_(with_own_workers(std::move(options))) {}
  // close(Close::drain), then join().
  ~FunctionPool() {
    pool_.close(Close::drain);
    join();
  }
  FunctionPool(const FunctionPool&) = delete;
  FunctionPool& operator=(const FunctionPool&) = delete;

  // Calls the function with `argument` on a worker, some time; the result is dropped. Does what
  // on_full says when there is no room. An argument is moved from even if it is refused.
  [[nodiscard]] std::error_code invoke(In argument) {
    const detail::Submitting scope(function_->objects());
    return pool_.submit(Call{this, std::move(argument)});
  }
  // Never parks.
  [[nodiscard]] std::error_code try_invoke(In argument) {
    const detail::Submitting scope(function_->objects());
    return pool_.try_submit(Call{this, std::move(argument)});
  }
  // Parks for room until the deadline at most, whatever on_full says.
  [[nodiscard]] std::error_code invoke_until(const Until& until, In argument) {
    const detail::Submitting scope(function_->objects());
    return pool_.submit_until(until, Call{this, std::move(argument)});
  }
  template <class Rep, class Period>
  [[nodiscard]] std::error_code invoke_for(std::chrono::duration<Rep, Period> duration,
                                           In argument) {
    return invoke_until(Deadline::after(duration), std::move(argument));
  }

  // Calls the function on a worker and waits for its result, or throws its exception. As
  // FiberPool::run(), also in what it throws for a call that was refused or dropped.
  Out process(In argument) {
    const detail::Submitting scope(function_->objects());
    Call call{this, std::move(argument)};
    return pool_.run(call);
  }
  // With a handle for the result; as FiberPool::async().
  [[nodiscard]] PoolTask<Out> async(In argument) {
    const detail::Submitting scope(function_->objects());
    if (function_->takes_stop()) return pool_.async(StoppableCall{this, std::move(argument)});
    return pool_.async(Call{this, std::move(argument)});
  }

  // As process(), but `until` may end both waits, that for room (if on_full is OnFull::block) and
  // that for the result. Then an empty optional is returned, or false if Out is void; the function
  // is not called if it has not been yet, and else its stop_token is told: it keeps its worker
  // until it returns. Takes one allocation.
  [[nodiscard]] InTime process_until(const Until& until, In argument) {
    if (until.is_never()) return process_in_time(std::move(argument));
    auto call = std::make_shared<detail::TimedCall<In, Out>>(std::move(argument));
    const std::error_code error = submit_timed(until, TimedTask(this, call));
    if (error == Errc::timed_out || error == Errc::cancelled) return {};
    if (error) WEFT_THROW(std::system_error(error));
    const detail::BlockingScope scope(&pool_);
    if (!call->wait_until(until)) return {};
    return call->take();
  }
  template <class Rep, class Period>
  [[nodiscard]] InTime process_for(std::chrono::duration<Rep, Period> duration, In argument) {
    return process_until(Deadline::after(duration), std::move(argument));
  }

  // The pool underneath: its size, its pauses, its numbers, its end.
  [[nodiscard]] FiberPool& pool() noexcept { return pool_; }
  // As FiberPool::join(); the objects of the workers are gone, too, when it returns.
  void join() {
    pool_.join();
    function_->wait_for_objects();
  }

 private:
  using Function = detail::PoolFunction<In, Out>;

  // Asked for when a call begins, so that nobody pays for it while it is queued.
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

  // Tells who waits, also if it is dropped without having run.
  class TimedTask {
   public:
    TimedTask(FunctionPool* pool, std::shared_ptr<detail::TimedCall<In, Out>> call) noexcept
        : pool_(pool), call_(std::move(call)) {}
    TimedTask(TimedTask&&) noexcept = default;
    TimedTask& operator=(TimedTask&&) = delete;
    ~TimedTask() {
      if (call_ != nullptr) call_->drop();
    }
    void operator()() {
      const auto call = std::exchange(call_, nullptr);
      if (call->is_given_up()) return;
      call->run(*pool_->function_, pool_->token_for_call());
    }

   private:
    FunctionPool* pool_;
    std::shared_ptr<detail::TimedCall<In, Out>> call_;
  };

  template <class F>
  static F&& checked(F&& function) {
    if (!detail::is_empty_callable(function)) return std::move(function);
    WEFT_THROW(std::invalid_argument("weft::FunctionPool: the function is empty"));
  }
  static PoolOptions with_own_workers(PoolOptions options) {
    if (options.parent == nullptr) return options;
    WEFT_THROW(
        std::invalid_argument("weft::FunctionPool: parent has the workers, not per_worker()"));
  }
  InTime process_in_time(In argument) {
    if constexpr (std::is_void_v<Out>) {
      process(std::move(argument));
      return true;
    } else {
      return process(std::move(argument));
    }
  }
  std::error_code submit_timed(const Until& until, TimedTask task) {
    const detail::Submitting scope(function_->objects());
    return waits_for_room_ ? pool_.submit_until(until, std::move(task))
                           : pool_.submit(std::move(task));
  }

  const std::unique_ptr<Function> function_;
  const bool waits_for_room_;
  FiberPool pool_;  // Ends first: its tasks call the function.
};

}  // namespace weft
