// Loops whose steps run at the same time.
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
#include <weft/detail/stop_registration.hpp>
#include <weft/submit_options.hpp>
#include <weft/task_group.hpp>

namespace weft {

struct ParallelOptions {
  // The most steps that are under way at once. 0: as many as the runtime has workers, which suits
  // steps that compute, while steps that wait want more; in a pool, as many as its capacity.
  std::size_t concurrency = 0;
  // Elements that a fiber takes at a time, one after the other. 0: an eighth of a fiber's fair
  // share, so that the last ones to finish are not far behind, and 1 if `concurrency` is given.
  std::size_t grain = 0;
};

namespace detail {

// Where the steps of a loop run, if not in fibers of their own; and what each of its tasks asks
// for.
struct LoopPool {
  GroupPool pool = {};
  const SubmitOptions* options = nullptr;

  template <class F>
  [[nodiscard]] Accepted spawn(TaskGroup& group, const F& task) const {
    return options == nullptr ? group.spawn_or_refuse(task) : group.spawn_or_refuse(*options, task);
  }
  // A stop request of the options cancels the loop as long as `scope` lives.
  void follow_stop(StopRegistration<CancelContext>& scope, Context& context) const noexcept {
    if (options != nullptr) scope.add(options->stop, {&context});
  }
};

// Hands out the numbers below `count` in runs of `grain`, to several fibers. Untyped in the
// elements, so that one loop serves all.
template <class Step>
void run_in_parallel(const LoopPool& where, std::size_t count, const ParallelOptions& options,
                     Step step) {
  if (count == 0) return;
  std::size_t most = options.concurrency;
  if (most == 0) most = where.pool ? where.pool.capacity() : concurrency();
  std::size_t grain = options.grain;
  if (grain == 0) grain = options.concurrency != 0 ? 1 : std::max<std::size_t>(1, count / most / 8);
  const std::size_t runs = count / grain + (count % grain != 0 ? 1 : 0);
  Atomic<std::size_t> next{0};
  Atomic<std::size_t> done{0};
  // A task of a pool that calls a loop without one waits for what the steps wait for.
  LocalNode* const task = where.pool ? nullptr : BehalfScope::task_of_caller();
  TaskGroup group(where.pool);
  StopRegistration<CancelContext> stop;
  where.follow_stop(stop, group.context());
  const auto work = [&](Context& context) {
    std::optional<BehalfScope> behalf;
    if (task != nullptr) behalf.emplace(*task);
    // Relaxed: every number is handed out once; the group orders the rest.
    for (std::size_t run = next.fetch_add(1, relaxed); run < runs && !context.is_over();
         run = next.fetch_add(1, relaxed)) {
      const std::size_t end = std::min(count, (run + 1) * grain);
      for (std::size_t i = run * grain; i < end; ++i) step(i);
      done.fetch_add(1, relaxed);
    }
  };
  const auto call_work = [&work](Context& context) { work(context); };
  const Accepted first = where.spawn(group, call_work);
  if (!first) WEFT_THROW(std::system_error(first.error(), "weft::for_each: refused by its pool"));
  // The tasks that are under way do all the work if a pool refuses others.
  for (std::size_t fiber = 1; fiber < std::min(most, runs) && next.load(relaxed) < runs; ++fiber) {
    if (!where.spawn(group, call_work)) break;
  }
  group.wait();
  if (done.load(relaxed) == runs) return;  // Whatever a pool may have dropped.
  group.join();
  // Without an exception only the end of the caller's context leaves anything out.
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

}  // namespace detail

// Calls `step(element)` for each element, several at the same time, and parks until all have
// returned. `range` must allow access by index; elements are taken in order. The first exception is
// thrown here; elements that have not begun are left out then. They are, too, when the caller's own
// context ends (see context.hpp): then its cause is thrown, or std::system_error with its error.
// Call it from fibers and plain threads (which need a Runtime). Throws also what go() throws. A
// task of a pool may call it, and steps may wait for that pool: its slot is free for others while
// any of them does. A step counts as a part of the task, so it cannot wait for that task's end.
// Synchronizes: the call with each step, and each step with the return.
template <detail::IndexedRange Range, class Step>
void for_each(Range&& range, Step step, const ParallelOptions& options = {}) {
  detail::call_for_each({}, range, step, options);
}
// The same, by tasks of `pool`. The first is submitted as on_full says, and throws
// std::system_error with the pool's code if it is refused; if others are, there are fewer. A task
// of the pool gives its slot back while it waits for the loop.
template <detail::IndexedRange Range, class Step>
void for_each(FiberPool& pool, Range&& range, Step step, const ParallelOptions& options = {}) {
  detail::call_for_each({detail::group_pool(pool)}, range, step, options);
}
// The same, and each task of the loop has `submit_options`. Its stop request, or one of the pool,
// leaves out what has not begun, as the end of the caller's context does; tasks that their deadline
// drops leave their elements to others, and std::system_error is thrown if there are none. Throws
// std::invalid_argument for a timeout.
template <detail::IndexedRange Range, class Step>
void for_each(FiberPool& pool, const SubmitOptions& submit_options, Range&& range, Step step,
              const ParallelOptions& options = {}) {
  detail::call_for_each({detail::group_pool(pool), &submit_options}, range, step, options);
}

// The same as for_each(), with the results of all calls, in the order of the elements.
template <detail::IndexedRange Range, class Step>
[[nodiscard]] auto transform(Range&& range, Step step, const ParallelOptions& options = {}) {
  return detail::results_of({}, range, step, options);
}
template <detail::IndexedRange Range, class Step>
[[nodiscard]] auto transform(FiberPool& pool, Range&& range, Step step,
                             const ParallelOptions& options = {}) {
  return detail::results_of({detail::group_pool(pool)}, range, step, options);
}
template <detail::IndexedRange Range, class Step>
[[nodiscard]] auto transform(FiberPool& pool, const SubmitOptions& submit_options, Range&& range,
                             Step step, const ParallelOptions& options = {}) {
  return detail::results_of({detail::group_pool(pool), &submit_options}, range, step, options);
}

}  // namespace weft
