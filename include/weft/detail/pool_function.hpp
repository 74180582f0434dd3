// Holds the function that a FunctionPool calls.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <weft/detail/local_scope.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/fiber_local.hpp>
#include <weft/wait_group.hpp>

namespace weft::detail {

template <class A, class In>
concept ArgumentFor = std::convertible_to<A, In>;

// The destructor moves `argument` back to `owner`, if give_back() can do so.
template <class A, class In>
struct GiveBack {
  std::remove_reference_t<A>& owner;
  In& argument;
  ~GiveBack() { give_back<A>(owner, argument); }
};

// Hides the type of the function that a pool calls.
template <class In, class Out>
class PoolFunction {
 public:
  virtual ~PoolFunction() = default;
  // Calls the function; several workers may make this call concurrently.
  virtual Out call(In&& argument, const std::stop_token& token) = 0;
  [[nodiscard]] virtual bool takes_stop() const noexcept = 0;
  // Returns the id of the per_worker() objects, for a Submitting scope; null if there are none.
  [[nodiscard]] virtual const void* objects() const noexcept { return nullptr; }
  // Parks until the objects of all workers are destroyed.
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

// While this object exists, its creator is submitting a task to the FunctionPool whose function
// owns `objects`. The constructor does not throw, so it cannot make a submission fail.
class Submitting : private LocalScope {
 public:
  explicit Submitting(const void* objects) noexcept
      : LocalScope(kSubmittingKey), objects_(objects) {}
  // Returns whether the caller is in a Submitting scope.
  [[nodiscard]] static bool is_any() noexcept { return innermost(kSubmittingKey) != nullptr; }
  // Returns whether the caller's innermost Submitting scope refers to `objects`.
  [[nodiscard]] static bool is_to(const void* objects) noexcept {
    const LocalScope* const scope = innermost(kSubmittingKey);
    return scope != nullptr && static_cast<const Submitting*>(scope)->objects_ == objects;
  }

 private:
  const void* const objects_;
};

// Keeps an object for each worker of the pool. The object is a FiberLocal value: the worker's fiber
// creates the object for its first call, and destroys it when the worker is retired. A task that
// runs inside submit() gets a new object, because its caller has no object, or is already using its
// object.
template <class Make, class In, class Out>
class FunctionPerWorker final : public PoolFunction<In, Out> {
  using Object = std::invoke_result_t<Make&>;

 public:
  explicit FunctionPerWorker(Make&& make)
      : make_(std::move(make)), objects_([this] { return Held(*this); }) {}

  Out call(In&& argument, const std::stop_token& token) override {
    if (Submitting::is_to(this)) {
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
  // Counts an object in a WaitGroup from before its creation until after its destruction.
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

}  // namespace weft::detail
