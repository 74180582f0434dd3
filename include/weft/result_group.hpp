// Runs a group of tasks, and collects their results.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/context.hpp>
#include <weft/detail/group_stop.hpp>
#include <weft/detail/guard.hpp>
#include <weft/mutex.hpp>
#include <weft/submit_options.hpp>
#include <weft/task_group.hpp>
#include <weft/until.hpp>

namespace weft {

// Works like a TaskGroup whose tasks each return an R. join() returns the results in the order of
// the spawns.
// Context, Throws, Ordering: as for TaskGroup; each spawn() may also park briefly, for a mutex.
template <class R>
class ResultGroup : private detail::WrongGroupCalls {
  static_assert(std::is_object_v<R>, "tasks without a result belong in a TaskGroup");

 public:
  // Creates a group, as TaskGroup's constructors do.
  explicit ResultGroup(const TaskGroupOptions& options = {}) : group_(options) {}
  explicit ResultGroup(const Context* parent, const TaskGroupOptions& options = {})
      : group_(parent, options) {}
  explicit ResultGroup(FiberPool& pool, const TaskGroupOptions& options = {})
      : group_(pool, options) {}

  // Starts a task, as TaskGroup::spawn() does.
  template <detail::GroupTask F>
  void spawn(F&& task) {
    group_.spawn(with_place(std::forward<F>(task)));
  }
  // Starts a task with options, as TaskGroup::spawn() does.
  template <detail::GroupTask F>
  void spawn(const SubmitOptions& options, F&& task) {
    group_.spawn(options, with_place(std::forward<F>(task)));
  }
  using WrongGroupCalls::spawn;  // Makes compiler errors name the arguments of a task.

  // Parks until every task has ended. Returns the results and leaves the group empty.
  // Throws: std::bad_alloc, or what TaskGroup::join() or moving an R throws; the results are lost.
  [[nodiscard]] std::vector<R> join() {
    const Clear clear{places_};
    group_.join();
    std::vector<R> results;
    results.reserve(places_.size());
    for (std::optional<R>& place : places_) {
      // A place is empty if its spawn() call threw an exception.
      if (place) results.push_back(std::move(*place));
    }
    return results;
  }

  // Waits for all tasks, so that join() does not park. Returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept { return group_.wait_until(until); }

  // Returns the context of the group, as TaskGroup::context() does.
  [[nodiscard]] Context& context() noexcept { return group_.context(); }
  // Requests that all tasks stop; join() still waits for them.
  void cancel() noexcept { group_.cancel(); }

 private:
  struct Clear {
    std::deque<std::optional<R>>& places;
    ~Clear() { places.clear(); }
  };
  std::optional<R>& add_place() {
    const detail::Guard guard(places_mutex_);
    return places_.emplace_back();
  }
  template <class F>
  [[nodiscard]] auto with_place(F&& task) {
    static_assert(std::is_convertible_v<detail::ResultIn<F>, R>);
    std::optional<R>& place = add_place();
    if constexpr (detail::kTakesTokenOnly<std::decay_t<F>>) {
      return [&place, task = std::forward<F>(task)](std::stop_token token) mutable {
        place.emplace(std::invoke(task, std::move(token)));
      };
    } else {
      return [&place, task = std::forward<F>(task)](Context& context) mutable {
        place.emplace(detail::invoke_in(context, task));
      };
    }
  }

  Mutex places_mutex_;
  std::deque<std::optional<R>> places_;  // A deque, so that references stay valid while it grows.
  TaskGroup group_;                      // Destroyed first, because its tasks write to places_.
};

}  // namespace weft
