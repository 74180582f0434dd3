// The report of a task that threw, and its receiver.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <weft/detail/pool_job.hpp>

namespace weft {

// Valid during the call that it is given to.
struct TaskInfo {
  std::string_view pool;  // PoolOptions::name.
  // Its place among the tasks that left the queue of the pool, to be run or to be dropped, from 1.
  // Where tasks start in the order in which they are accepted, and none is run by
  // OnFull::caller_runs, that is its place in that order, too.
  std::uint64_t number = 0;
  const std::type_info* type = nullptr;  // The type of the callable; null without RTTI.
  std::uint64_t fiber = 0;               // this_fiber::id() of its runner; 0: a plain thread.
};

// The receiver of the exceptions of a pool's tasks: a callable of an exception_ptr and a TaskInfo,
// or of an exception_ptr alone. If it is empty, no handler receives them. A plain value, except its
// call, which parks, throws and synchronizes as the handler does.
class ExceptionHandler {
 public:
  ExceptionHandler() noexcept = default;
  // Empty if `handler` is an empty std::function, or null.
  template <std::invocable<std::exception_ptr, const TaskInfo&> F>
  ExceptionHandler(F handler) {  // NOLINT(google-explicit-constructor): a callable is a handler.
    if (!detail::is_empty_callable(handler)) handler_ = std::move(handler);
  }
  template <std::invocable<std::exception_ptr> F>
  requires(!std::invocable<F, std::exception_ptr, const TaskInfo&>)
      ExceptionHandler(F handler) {  // NOLINT(google-explicit-constructor): as above.
    if (detail::is_empty_callable(handler)) return;
    handler_ = [of_exception = std::move(handler)](std::exception_ptr exception,
                                                   const TaskInfo& /*task*/) mutable {
      of_exception(std::move(exception));
    };
  }

  // Returns whether there is a handler.
  [[nodiscard]] explicit operator bool() const noexcept { return handler_ != nullptr; }
  // Calls the handler, which must be there. It is called by the pool alone, on the fiber whose task
  // threw.
  void operator()(std::exception_ptr exception, const TaskInfo& task) const {
    handler_(std::move(exception), task);
  }

 private:
  std::function<void(std::exception_ptr, const TaskInfo&)> handler_;
};

}  // namespace weft
