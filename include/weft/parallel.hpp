// Loops whose steps run at the same time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/task_group.hpp>

namespace weft {

struct ParallelOptions {
  // The most steps that are under way at once. 0: as many as the runtime has workers, which suits
  // steps that compute; steps that wait want more.
  std::size_t concurrency = 0;
  // Elements that a fiber takes at a time, one after the other. 0: an eighth of a fiber's fair
  // share, so that the last ones to finish are not far behind, and 1 if `concurrency` is given.
  std::size_t grain = 0;
};

namespace detail {

// Hands out the numbers below `count` in runs of `grain`, to `fibers` fibers. Untyped in the
// elements, so that one loop serves all.
template <class Step>
void run_in_parallel(std::size_t count, const ParallelOptions& options, Step step) {
  if (count == 0) return;
  const std::size_t most = options.concurrency != 0 ? options.concurrency : concurrency();
  std::size_t grain = options.grain;
  if (grain == 0) grain = options.concurrency != 0 ? 1 : std::max<std::size_t>(1, count / most / 8);
  const std::size_t runs = count / grain + (count % grain != 0 ? 1 : 0);
  Atomic<std::size_t> next{0};
  Atomic<std::size_t> done{0};
  TaskGroup group;
  const auto work = [&](Context& context) {
    // Relaxed: every number is handed out once; the group orders the rest.
    for (std::size_t run = next.fetch_add(1, relaxed); run < runs && !context.is_over();
         run = next.fetch_add(1, relaxed)) {
      const std::size_t end = std::min(count, (run + 1) * grain);
      for (std::size_t i = run * grain; i < end; ++i) step(i);
      done.fetch_add(1, relaxed);
    }
  };
  for (std::size_t fiber = 0; fiber < std::min(most, runs); ++fiber) {
    group.spawn([&work](Context& context) { work(context); });
  }
  group.join();
  // Without an exception only the end of the caller's context leaves anything out.
  if (done.load(relaxed) < runs) group.context().throw_if_over();
}

}  // namespace detail

// Calls `step(element)` for each element, several at the same time, and parks until all have
// returned. `range` must allow access by index; elements are taken in order. The first exception
// is thrown here; elements that nobody has begun are left out then. They are, too, when the
// caller's own context ends (see context.hpp): then its cause is thrown, or std::system_error with
// its error. From fibers and plain threads (which need a Runtime). Throws also what go() throws.
template <std::ranges::random_access_range Range, class Step>
requires std::ranges::sized_range<Range>
void for_each(Range&& range, Step step, const ParallelOptions& options = {}) {
  const auto first = std::ranges::begin(range);
  detail::run_in_parallel(std::ranges::size(range), options, [&](std::size_t i) {
    std::invoke(step, first[static_cast<std::ranges::range_difference_t<Range>>(i)]);
  });
}

// The same, with the results of all calls, in the order of the elements.
template <std::ranges::random_access_range Range, class Step>
requires std::ranges::sized_range<Range>
[[nodiscard]] auto transform(Range&& range, Step step, const ParallelOptions& options = {}) {
  using Result =
      std::remove_cvref_t<std::invoke_result_t<Step&, std::ranges::range_reference_t<Range>>>;
  const auto first = std::ranges::begin(range);
  std::vector<std::optional<Result>> places(std::ranges::size(range));
  detail::run_in_parallel(places.size(), options, [&](std::size_t i) {
    places[i].emplace(
        std::invoke(step, first[static_cast<std::ranges::range_difference_t<Range>>(i)]));
  });
  std::vector<Result> results;
  results.reserve(places.size());
  for (std::optional<Result>& place : places) results.push_back(std::move(*place));
  return results;
}

}  // namespace weft
