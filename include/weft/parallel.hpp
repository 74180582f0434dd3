// Runs the steps of a loop concurrently.
// Context: fibers, and plain threads if there is a Runtime; all functions park.
// Ordering: the call happens before each step, and each step happens before the call returns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <ranges>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/accepted.hpp>
#include <weft/context.hpp>
#include <weft/detail/behalf_scope.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/group_pool.hpp>
#include <weft/detail/group_stop.hpp>
#include <weft/detail/own_runtime.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/detail/wrong_callable.hpp>
#include <weft/spawn_options.hpp>
#include <weft/submit_options.hpp>
#include <weft/task_group.hpp>

namespace weft {

struct ParallelOptions {
  // The largest number of concurrent steps. 0: the pool's capacity or, without a pool, the number
  // of workers. The number of workers suits steps that compute; steps that wait need more.
  std::size_t max_running = 0;
  // The number of elements that a fiber takes at a time. 0: one element if `max_running` is given,
  // otherwise 1/8 of a fiber's equal share, so that all fibers end at about the same time.
  std::size_t grain = 0;
  // The options of the fibers that run a loop without a pool.
  SpawnOptions fibers = {};
};

namespace detail {

// Holds the pool in which a loop runs, if any, and the options of the loop's tasks in that pool.
struct LoopPool {
  GroupPool pool = {};
  const SubmitOptions* options = nullptr;

  template <class F>
  [[nodiscard]] Accepted spawn(TaskGroup& group, const F& task) const {
    return options == nullptr ? group.spawn_or_refuse(task) : group.spawn_or_refuse(*options, task);
  }
  // While `scope` exists, a stop request through `options->stop` cancels the loop's context.
  void follow_stop(StopRegistration<CancelContext>& scope, Context& context) const noexcept {
    if (options != nullptr) scope.add(options->stop, {&context});
  }
};

// Distributes the indices from 0 to `count` - 1 among several fibers, in runs of `grain` indices.
// The code does not depend on the type of the elements, because it uses only their indices.
template <class Step>
void run_in_parallel(const LoopPool& where, std::size_t count, const ParallelOptions& options,
                     Step step) {
  if (count == 0) return;
  std::size_t most = options.max_running;
  if (most == 0) most = where.pool ? where.pool.capacity() : concurrency();
  std::size_t grain = options.grain;
  if (grain == 0) grain = options.max_running != 0 ? 1 : std::max<std::size_t>(1, count / most / 8);
  const std::size_t runs = count / grain + (count % grain != 0 ? 1 : 0);
  Atomic<std::size_t> next{0};
  Atomic<std::size_t> done{0};
  // If the caller is a task of a pool, it gives its slot back while a step waits for that pool.
  LocalNode* const task = where.pool ? nullptr : BehalfScope::task_of_caller();
  TaskGroup group(where.pool, {.fibers = options.fibers});
  StopRegistration<CancelContext> stop;
  where.follow_stop(stop, group.context());
  const auto work = [&](Context& context) {
    std::optional<BehalfScope> behalf;
    if (task != nullptr) behalf.emplace(*task);
    // Relaxed: each addition returns a different run, and `group` orders all other accesses.
    for (std::size_t run = next.fetch_add(1, relaxed); run < runs && !context.is_over();
         run = next.fetch_add(1, relaxed)) {
      const std::size_t end = std::min(count, (run + 1) * grain);
      for (std::size_t i = run * grain; i < end; ++i) step(i);
      done.fetch_add(1, relaxed);
    }
  };
  const auto call_work = [&work](Context& context) { work(context); };
  const Accepted first = where.spawn(group, call_work);
  if (!first) WEFT_THROW(std::system_error(first.error, "weft::for_each: refused by its pool"));
  // If a pool refuses further tasks, the started tasks run all steps.
  for (std::size_t fiber = 1; fiber < std::min(most, runs) && next.load(relaxed) < runs; ++fiber) {
    if (!where.spawn(group, call_work)) break;
  }
  group.wait();
  // Every step has run, even if the pool has dropped tasks.
  if (done.load(relaxed) == runs) return;
  group.join();
  // join() rethrew nothing, so no step threw. If steps were skipped, the context has ended.
  group.context().throw_if_over();
}

template <class Range, class Step>
[[nodiscard]] auto results_of(const LoopPool& where, Range& range, Step& step,
                              const ParallelOptions& options) {
  using Result =
      std::remove_cvref_t<std::invoke_result_t<Step&, std::ranges::range_reference_t<Range>>>;
  const auto first = std::ranges::begin(range);
  std::vector<std::optional<Result>> places(std::ranges::size(range));
  run_in_parallel(where, places.size(), options, [&](std::size_t i) {
    places[i].emplace(
        std::invoke(step, first[static_cast<std::ranges::range_difference_t<Range>>(i)]));
  });
  std::vector<Result> results;
  results.reserve(places.size());
  for (std::optional<Result>& place : places) results.push_back(std::move(*place));
  return results;
}

template <class Range, class Step>
void call_for_each(const LoopPool& where, Range& range, Step& step,
                   const ParallelOptions& options) {
  const auto first = std::ranges::begin(range);
  run_in_parallel(where, std::ranges::size(range), options, [&](std::size_t i) {
    std::invoke(step, first[static_cast<std::ranges::range_difference_t<Range>>(i)]);
  });
}

template <class Range>
concept IndexedRange = std::ranges::random_access_range<Range> && std::ranges::sized_range<Range>;
// A StepOver takes an element; a MappingOf also returns a value.
template <class F, class Range>
concept StepOver = std::invocable<F&, std::ranges::range_reference_t<Range>>;
template <class F, class Range>
concept MappingOf = StepOver<F, Range> &&
    !std::is_void_v<std::invoke_result_t<F&, std::ranges::range_reference_t<Range>>>;

}  // namespace detail

// Calls `step(element)` for each element, several at once, and parks until all calls have returned.
// `range` must be accessible by index; elements are taken in order. After a step throws or the
// caller's context (context.hpp) ends, the other fibers only finish the elements that they have
// taken. If a task of a pool calls for_each(), a step may wait for that pool, because the task then
// gives its slot back. A step must not wait for the end of that task.
// Throws: the first exception of a step; whatever go() throws; if steps are skipped because the
// context has ended, the context's cause, or std::system_error if it has none.
template <detail::IndexedRange Range, detail::StepOver<Range> Step>
void for_each(Range&& range, Step step, const ParallelOptions& options = {}) {
  detail::call_for_each({}, range, step, options);
}
// Runs the steps in tasks of `pool`. Each task is submitted as on_full specifies; if the pool
// refuses a task after the first, fewer tasks run. A caller that is a task of the pool frees its
// slot while it waits for the steps.
// Throws: also std::system_error with the pool's error if the pool refuses the first task.
template <detail::IndexedRange Range, detail::StepOver<Range> Step>
void for_each(FiberPool& pool, Range&& range, Step step, const ParallelOptions& options = {}) {
  detail::call_for_each({detail::group_pool(pool)}, range, step, options);
}
// Runs the steps in tasks of `pool` with `submit_options`. A stop request for these tasks or for
// the pool has the same effect as the end of the caller's context. If the pool drops a task whose
// deadline has passed, other tasks take its elements.
// Throws: also std::system_error if all tasks are dropped; std::invalid_argument if timeout is set.
template <detail::IndexedRange Range, detail::StepOver<Range> Step>
void for_each(FiberPool& pool, const SubmitOptions& submit_options, Range&& range, Step step,
              const ParallelOptions& options = {}) {
  detail::call_for_each({detail::group_pool(pool), &submit_options}, range, step, options);
}

// Runs the steps as for_each() does, and returns all results in the order of the elements.
// Throws: whatever for_each() throws, and what moving a result throws.
template <detail::IndexedRange Range, detail::MappingOf<Range> Step>
[[nodiscard]] auto transform(Range&& range, Step step, const ParallelOptions& options = {}) {
  return detail::results_of({}, range, step, options);
}
template <detail::IndexedRange Range, detail::MappingOf<Range> Step>
[[nodiscard]] auto transform(FiberPool& pool, Range&& range, Step step,
                             const ParallelOptions& options = {}) {
  return detail::results_of({detail::group_pool(pool)}, range, step, options);
}
template <detail::IndexedRange Range, detail::MappingOf<Range> Step>
[[nodiscard]] auto transform(FiberPool& pool, const SubmitOptions& submit_options, Range&& range,
                             Step step, const ParallelOptions& options = {}) {
  return detail::results_of({detail::group_pool(pool), &submit_options}, range, step, options);
}

// The overloads below exist only for their error messages.
template <detail::IndexedRange Range, class Step>
requires(!detail::StepOver<Step, Range>) void for_each(Range&&, Step, const ParallelOptions& = {}) {
  static_assert(detail::kFits<Step>, "weft::for_each: the step must take an element of the range");
}
template <detail::IndexedRange Range, class Step>
requires(!detail::StepOver<Step, Range>) void for_each(FiberPool&, Range&&, Step,
                                                       const ParallelOptions& = {}) {
  static_assert(detail::kFits<Step>, "weft::for_each: the step must take an element of the range");
}
template <detail::IndexedRange Range, class Step>
requires(!detail::StepOver<Step, Range>) void for_each(FiberPool&, const SubmitOptions&, Range&&,
                                                       Step, const ParallelOptions& = {}) {
  static_assert(detail::kFits<Step>, "weft::for_each: the step must take an element of the range");
}
template <detail::IndexedRange Range, class Step>
requires(!detail::MappingOf<Step, Range>) std::vector<int> transform(Range&&, Step,
                                                                     const ParallelOptions& = {}) {
  static_assert(detail::kFits<Step>,
                "weft::transform: the step must take an element of the range and return a value");
  return {};
}
template <detail::IndexedRange Range, class Step>
requires(!detail::MappingOf<Step, Range>) std::vector<int> transform(FiberPool&, Range&&, Step,
                                                                     const ParallelOptions& = {}) {
  static_assert(detail::kFits<Step>,
                "weft::transform: the step must take an element of the range and return a value");
  return {};
}
template <detail::IndexedRange Range, class Step>
requires(!detail::MappingOf<Step, Range>) std::vector<int> transform(FiberPool&,
                                                                     const SubmitOptions&, Range&&,
                                                                     Step,
                                                                     const ParallelOptions& = {}) {
  static_assert(detail::kFits<Step>,
                "weft::transform: the step must take an element of the range and return a value");
  return {};
}

}  // namespace weft
