// Fibers that end together, with their results.
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

// A TaskGroup whose tasks return an R each; join() returns them in the order of the spawns.
template <class R>
class ResultGroup {
  static_assert(std::is_object_v<R>, "tasks without a result belong in a TaskGroup");

 public:
  // As TaskGroup's: with the caller's context above it, or `parent`, or none if that is null; or on
  // a pool, which must outlive the group.
  explicit ResultGroup(const TaskGroupOptions& options = {}) : group_(options) {}
  explicit ResultGroup(const Context* parent, const TaskGroupOptions& options = {})
      : group_(parent, options) {}
  explicit ResultGroup(FiberPool& pool, const TaskGroupOptions& options = {})
      : group_(pool, options) {}

  // Does the same as TaskGroup::spawn().
  template <class F>
  void spawn(F&& task) {
    group_.spawn(with_place(std::forward<F>(task)));
  }
  // Does the same as TaskGroup::spawn() with options.
  template <class F>
  void spawn(const SubmitOptions& options, F&& task) {
    group_.spawn(options, with_place(std::forward<F>(task)));
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

  // Parks until every task has ended; join() will not park then. Returns false when `until` ended
  // the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept { return group_.wait_until(until); }

  // Does the same as TaskGroup::context().
  [[nodiscard]] Context& context() noexcept { return group_.context(); }
  // Tells all tasks to stop; join() still waits for them. Never parks.
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
  std::deque<std::optional<R>> places_;  // A deque: references stay good while it grows.
  TaskGroup group_;                      // Ends first: its tasks write to the places.
};

}  // namespace weft
