// What a FunctionPool calls, and the calls that somebody waits for with a limit.
#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/event.hpp>
#include <weft/fiber_local.hpp>
#include <weft/wait_group.hpp>

namespace weft::detail {

// The function of a pool, whatever its type.
template <class In, class Out>
class PoolFunction {
 public:
  virtual ~PoolFunction() = default;
  // By several workers at a time.
  virtual Out call(In&& argument, const std::stop_token& token) = 0;
  [[nodiscard]] virtual bool takes_stop() const noexcept = 0;
  // Around each call that may run tasks on the stack of who submits.
  [[nodiscard]] virtual const void* objects() const noexcept { return nullptr; }
  // Parks until the objects of workers that have been retired are gone.
  virtual void wait_for_objects() noexcept {}
};

template <class F, class In>
decltype(auto) call_with(F& function, In&& argument, const std::stop_token& token) {
  if constexpr (std::invocable<F&, In, std::stop_token>) {
    return std::invoke(function, std::forward<In>(argument), token);
  } else {
    return std::invoke(function, std::forward<In>(argument));
  }
}
template <class F, class In, class Out>
concept FunctionFor =
    std::is_invocable_r_v<Out, F&, In> || std::is_invocable_r_v<Out, F&, In, std::stop_token>;

template <class F, class In, class Out>
class OneFunction final : public PoolFunction<In, Out> {
 public:
  explicit OneFunction(F&& function) : function_(std::move(function)) {}
  Out call(In&& argument, const std::stop_token& token) override {
    return static_cast<Out>(call_with(function_, std::move(argument), token));
  }
  [[nodiscard]] bool takes_stop() const noexcept override {
    return std::invocable<F&, In, std::stop_token>;
  }

 private:
  F function_;
};

// Whose objects() the calling fiber or thread is submitting to; null if it is not.
inline const FiberLocal<const void*> submitting_to;

class Submitting {
 public:
  explicit Submitting(const void* objects) noexcept
      : place_(objects == nullptr ? nullptr : &*submitting_to) {
    if (place_ != nullptr) before_ = std::exchange(*place_, objects);
  }
  ~Submitting() {
    if (place_ != nullptr) *place_ = before_;
  }
  Submitting(const Submitting&) = delete;
  Submitting& operator=(const Submitting&) = delete;

 private:
  const void** const place_;
  const void* before_ = nullptr;
};

// An object for each worker: a FiberLocal of the worker's fiber, made with its first task and
// destroyed when it ends. A task that the pool runs in submit() is on a fiber, or thread, that is
// not a worker of its own, or one whose object is in use: it gets an object for this one call.
template <class Make, class In, class Out>
class FunctionPerWorker final : public PoolFunction<In, Out> {
  using Object = std::invoke_result_t<Make&>;

 public:
  explicit FunctionPerWorker(Make&& make)
      : make_(std::move(make)), objects_([this] { return Held(*this); }) {}

  Out call(In&& argument, const std::stop_token& token) override {
    if (*submitting_to == this) {
      Object object(make_());
      return static_cast<Out>(call_with(object, std::move(argument), token));
    }
    return static_cast<Out>(call_with(objects_->object, std::move(argument), token));
  }
  [[nodiscard]] bool takes_stop() const noexcept override {
    return std::invocable<Object&, In, std::stop_token>;
  }
  [[nodiscard]] const void* objects() const noexcept override { return this; }
  void wait_for_objects() noexcept override { living_.wait(); }

 private:
  // Counts from before the object is made until after it is gone.
  struct Living {
    explicit Living(WaitGroup& counted_by) noexcept : group(counted_by) { group.add(); }
    ~Living() { group.done(); }
    Living(const Living&) = delete;
    Living& operator=(const Living&) = delete;
    WaitGroup& group;
  };
  struct Held {
    explicit Held(FunctionPerWorker& function)
        : living(function.living_), object(function.make_()) {}
    Living living;
    Object object;
  };

  Make make_;
  WaitGroup living_;
  FiberLocal<Held> objects_;
};

// A call whose caller may give up; the caller and the task share it.
template <class In, class Out>
class TimedCall {
 public:
  explicit TimedCall(In&& argument) : argument_(std::move(argument)) {}

  // By the task: one of these. The call is told of requests to `of_pool`, too.
  void run(PoolFunction<In, Out>& function, const std::stop_token& of_pool) noexcept {
    StopRegistration<Request> following;
    following.add(of_pool, Request{stop_});
    WEFT_TRY {
      if constexpr (std::is_void_v<Out>) {
        function.call(std::move(*argument_), stop_.get_token());
        value_.emplace();
      } else {
        value_.emplace(function.call(std::move(*argument_), stop_.get_token()));
      }
    }
    WEFT_CATCH_ALL { exception_ = std::current_exception(); }
    argument_.reset();
    ended_.set();
  }
  void drop() noexcept {
    argument_.reset();
    ended_.set();
  }

  // By the caller.
  [[nodiscard]] bool wait_until(const Until& until) noexcept {
    if (ended_.wait_until(until)) return true;
    stop_.request_stop();
    return false;
  }
  [[nodiscard]] bool is_given_up() const noexcept { return stop_.stop_requested(); }
  // After the end.
  auto take() {
    if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
    if (!value_) WEFT_THROW(std::system_error(std::make_error_code(std::errc::operation_canceled)));
    if constexpr (std::is_void_v<Out>) {
      return true;
    } else {
      return std::move(value_);
    }
  }

 private:
  struct Request {
    std::stop_source source;
    void operator()() noexcept { source.request_stop(); }
  };

  std::optional<In> argument_;
  std::stop_source stop_;
  Event ended_;
  std::optional<std::conditional_t<std::is_void_v<Out>, std::monostate, Out>> value_;
  std::exception_ptr exception_;
};

}  // namespace weft::detail
