// Fibers that end together.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/context.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/semaphore.hpp>
#include <weft/wait_group.hpp>

namespace weft {

// What the other tasks of a group do when one has thrown.
enum class OnError : std::uint8_t {
  cancel_rest,  // The group's context is cancelled; the first exception is kept.
  run_rest,     // They go on; all exceptions are kept.
};

struct TaskGroupOptions {
  // The most tasks that run at once. At least 1.
  std::size_t limit = SIZE_MAX;
  OnError on_error = OnError::cancel_rest;
  // The deadline of the group's context.
  Deadline deadline = Deadline::never();
};

namespace detail {

// What a task of a group may take: the group's context, a stop_token, or nothing.
template <class F>
decltype(auto) invoke_in(Context& context, F& task) {
  if constexpr (std::invocable<F&, Context&>) {
    return std::invoke(task, context);
  } else if constexpr (std::invocable<F&, std::stop_token>) {
    return std::invoke(task, context.token());
  } else {
    return std::invoke(task);
  }
}
template <class F>
using ResultIn = decltype(invoke_in(std::declval<Context&>(), std::declval<std::decay_t<F>&>()));

}  // namespace detail

// A nursery: fibers that are started in a scope and have ended when it is left. Go's errgroup.
// A task takes nothing, a std::stop_token, or the group's Context&. With the first exception the
// group's context is cancelled, so that the others can stop early; join() throws it.
// From fibers and plain threads; tasks of the group may start others. After a join() the group can
// be used again, though a cancelled context stays so.
// Synchronizes: spawn() with the start of the task, the end of each task with the return of join().
class TaskGroup {
 public:
  // Its context is a child of the caller's own, if that has one. Throws std::invalid_argument for a
  // limit of 0.
  explicit TaskGroup(const TaskGroupOptions& options = {})
      : TaskGroup(this_fiber::context(), options) {}
  // Its context is a child of `parent`, if that is not null; it must outlive the group.
  explicit TaskGroup(const Context* parent, const TaskGroupOptions& options = {})
      : options_(checked(options)), permits_(options.limit), context_(parent, options.deadline) {}
  // Cancels what still runs, and waits for it. Exceptions that nobody joined for are dropped.
  ~TaskGroup() {
    context_.cancel();
    running_.wait();
  }
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts a task. Parks while `limit` others run, first come, first served. A task of the group
  // that starts another at the limit would wait for its own place: it runs the new one itself
  // instead, before this call returns. Throws as go(); nothing has been started then.
  template <class F>
  void spawn(F&& task) {
    if (is_limited() && !permits_.try_acquire()) {
      if (runs_in_own_task()) return run(task);
      permits_.acquire();
    }
    start(std::forward<F>(task));
  }
  // False when `limit` tasks run. Never parks.
  template <class F>
  [[nodiscard]] bool try_spawn(F&& task) {
    if (is_limited() && !permits_.try_acquire()) return false;
    start(std::forward<F>(task));
    return true;
  }
  // False when `until` ended the wait for a place.
  template <class F>
  [[nodiscard]] bool spawn_until(const Until& until, F&& task) {
    if (is_limited() && !permits_.try_acquire_until(until)) return false;
    start(std::forward<F>(task));
    return true;
  }

  // Parks until every task has ended, then throws the first exception, if there was one.
  void join() {
    wait();
    const std::vector<std::exception_ptr> errors = take_errors();
    if (!errors.empty()) std::rethrow_exception(errors.front());
  }
  // Parks until every task has ended; take_errors() has what they have thrown.
  void wait() noexcept { running_.wait(); }
  // False when `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept { return running_.wait_until(until); }

  [[nodiscard]] Context& context() noexcept { return context_; }
  // Tells all tasks to stop; join() still waits for them.
  void cancel() noexcept { context_.cancel(); }
  // Takes the exceptions out that have been kept, in the order in which they came.
  [[nodiscard]] std::vector<std::exception_ptr> take_errors() {
    const std::lock_guard guard(errors_mutex_);
    return std::exchange(errors_, {});
  }

 private:
  static const TaskGroupOptions& checked(const TaskGroupOptions& options) {
    if (options.limit > 0) return options;
    throw std::invalid_argument("TaskGroupOptions::limit = 0, at least 1");
  }
  [[nodiscard]] bool is_limited() const noexcept { return options_.limit != SIZE_MAX; }

  template <class F>
  void start(F&& task) {
    running_.add();
    try {
      // Optional, because the task and all it holds must be gone before a joiner goes on, and so
      // must the fiber's locals.
      go([this, task = std::optional<std::decay_t<F>>(std::forward<F>(task))]() mutable {
        run(*task);
        task.reset();
        detail::destroy_locals();
        end();
      });
    } catch (...) {
      end();
      throw;
    }
  }
  // On the fiber of a task.
  template <class F>
  void run(F& task) {
    const ContextScope scope(context_);
    try {
      (void)detail::invoke_in(context_, task);
    } catch (...) {
      keep(std::current_exception());
    }
  }
  [[nodiscard]] bool runs_in_own_task() const noexcept {
    const Context* context = this_fiber::context();
    return context != nullptr && context->is_within(context_);
  }
  void keep(std::exception_ptr error) noexcept {
    {
      const std::lock_guard guard(errors_mutex_);
      if (options_.on_error == OnError::run_rest || errors_.empty()) errors_.push_back(error);
    }
    if (options_.on_error == OnError::cancel_rest) context_.cancel(std::move(error));
  }
  // A task's last access to the group.
  void end() noexcept {
    if (is_limited()) permits_.release();
    running_.done();
  }

  const TaskGroupOptions options_;
  Semaphore permits_;
  WaitGroup running_;
  Mutex errors_mutex_;
  std::vector<std::exception_ptr> errors_;  // Guarded by errors_mutex_.
  Context context_;
};

// A TaskGroup whose tasks return an R each; join() returns them in the order of the spawns.
template <class R>
class ResultGroup {
  static_assert(std::is_object_v<R>, "tasks without a result belong in a TaskGroup");

 public:
  explicit ResultGroup(const TaskGroupOptions& options = {}) : group_(options) {}
  explicit ResultGroup(const Context* parent, const TaskGroupOptions& options = {})
      : group_(parent, options) {}

  // As TaskGroup::spawn().
  template <class F>
  void spawn(F&& task) {
    static_assert(std::is_convertible_v<detail::ResultIn<F>, R>);
    std::optional<R>& place = add_place();
    group_.spawn([&place, task = std::forward<F>(task)](Context& context) mutable {
      place.emplace(detail::invoke_in(context, task));
    });
  }

  // Parks until every task has ended; returns the results, or throws the first exception. The
  // results of tasks that ended well are dropped then. The group is empty afterwards.
  [[nodiscard]] std::vector<R> join() {
    const Clear clear{places_};
    group_.join();
    std::vector<R> results;
    results.reserve(places_.size());
    for (std::optional<R>& place : places_) {
      // Empty if the spawn threw.
      if (place) results.push_back(std::move(*place));
    }
    return results;
  }

  // Parks until every task has ended; join() will not park then. False when `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept { return group_.wait_until(until); }

  [[nodiscard]] Context& context() noexcept { return group_.context(); }
  void cancel() noexcept { group_.cancel(); }

 private:
  struct Clear {
    std::deque<std::optional<R>>& places;
    ~Clear() { places.clear(); }
  };
  std::optional<R>& add_place() {
    const std::lock_guard guard(places_mutex_);
    return places_.emplace_back();
  }

  Mutex places_mutex_;
  std::deque<std::optional<R>> places_;  // A deque: references stay good while it grows.
  TaskGroup group_;                      // Ends first: its tasks write to the places.
};

}  // namespace weft
