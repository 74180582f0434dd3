// Passes the exceptions of a pool's tasks to a handler.
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

// Describes a task that threw. A TaskInfo is valid only during the call of the handler.
struct TaskInfo {
  std::string_view pool;  // PoolOptions::name.
  // The task's position, counted from 1, among the tasks that left the pool's queue to run or to be
  // dropped. It equals the position in the order of acceptance if tasks start in that order and
  // OnFull::caller_runs runs no task.
  std::uint64_t number = 0;
  const std::type_info* type = nullptr;  // The type of the callable; null without RTTI.
  std::uint64_t fiber = 0;               // this_fiber::id() of the task's fiber; 0: a plain thread.
};

// Receives the exceptions of a pool's tasks. The handler is a callable that takes an exception_ptr
// and a TaskInfo, or only an exception_ptr. An empty ExceptionHandler handles no exceptions.
// Context: plain value. Calling an ExceptionHandler has the same effects as calling its handler.
class ExceptionHandler {
 public:
  ExceptionHandler() noexcept = default;
  // Stores `handler`. For an empty std::function or a null pointer, the ExceptionHandler is empty.
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
  // Calls the handler, which must not be empty. Only the pool makes this call, on the fiber or
  // plain thread that ran the task.
  void operator()(std::exception_ptr exception, const TaskInfo& task) const {
    handler_(std::move(exception), task);
  }

 private:
  std::function<void(std::exception_ptr, const TaskInfo&)> handler_;
};

}  // namespace weft
