// Submits tasks to a pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <span>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>
#include <weft/accepted.hpp>
#include <weft/detail/attributed_job.hpp>
#include <weft/detail/carried_call.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/group_pool.hpp>
#include <weft/detail/pool_batch.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/pool_task.hpp>
#include <weft/result.hpp>
#include <weft/submit_options.hpp>
#include <weft/until.hpp>

namespace weft::detail {

template <class Range>
concept RangeOfTasks =
    std::ranges::input_range<Range> && PoolCallable<std::ranges::range_value_t<Range>>;

// A multi-pass iterator whose dereference moves the element out.
template <class Iterator>
concept MovesOutOfElements =
    std::copyable<Iterator> && std::is_rvalue_reference_v<std::iter_reference_t<Iterator>> &&
    std::derived_from<typename std::iterator_traits<Iterator>::iterator_category,
                      std::forward_iterator_tag>;

// The return type of run_until().
template <class R>
using InTime = std::conditional_t<std::is_void_v<R>, bool, std::optional<R>>;

// Makes an item from each submitted callable, and submits the item to the pool. Returns a refused
// callable to its owner. FiberPool documents each kind of submission.
class PoolEntry {
 public:
  using Room = detail::Room;
  template <class F>
  using TaskOf = PoolTask<PoolResult<std::decay_t<F>&>>;

  explicit PoolEntry(pool::PoolCore& core) noexcept : core_(core) {}

  // Tries to submit an item with a single push, which suffices for most items. May yield. If the
  // push fails, changes nothing and returns false. A result of type Accepted would cost more.
  [[nodiscard]] static bool enqueue_at_once(pool::PoolCore& core, PoolItem& item, Room room);
  // Submits an item. A refused item is unchanged.
  [[nodiscard]] static Accepted enqueue(pool::PoolCore& core, PoolItem& item, Room room,
                                        const Until& until);
  // Works like enqueue() above; a stop request through `options` also ends the wait for room.
  [[nodiscard]] static Accepted enqueue(pool::PoolCore& core, PoolItem& item,
                                        const SubmitOptions& options, Room room,
                                        const Until& until);
  // Submits the item of `job`, or runs it in the caller's slot. Parks until an accepted job ends.
  [[nodiscard]] static Accepted enqueue_and_wait(pool::PoolCore& core, PoolItem& item,
                                                 PoolJob& job);
  // Submits the items in order. Returns the number of accepted items, and the error of the next
  // item if it was refused.
  [[nodiscard]] static Result<std::size_t> enqueue(pool::PoolCore& core, std::span<PoolItem> items,
                                                   Room room, const Until& until);

  [[nodiscard]] Accepted hand_over(PoolItem& item, Room room, const Until& until) const {
    return enqueue(core_, item, room, until);
  }
  // `until` is empty, or contains one limit for how long the call waits for room.
  template <class F, class... Limit>
  [[nodiscard]] Accepted hand_over(Room room, F&& callable, const Limit&... until) const {
    Unaccepted unaccepted{item_of(std::forward<F>(callable))};
    if (enqueue_at_once(core_, unaccepted.item, room)) [[likely]]
      return {};
    const Unaccepted::Owner owner{unaccepted.item};
    const Accepted accepted = enqueue_slowly(core_, unaccepted.item, room, until...);
    if (!accepted) [[unlikely]]
      unaccepted.item.give_back_to<F>(callable);
    return accepted;
  }
  template <class F>
  [[nodiscard]] Accepted hand_over(const SubmitOptions& options, Room room, const Until& until,
                                   F&& callable) const {
    using Callable = std::decay_t<F>;
    PoolItem item;
    if (is_empty_callable<Callable>(callable)) return enqueue(core_, item, room, until);
    AttributedTask& task = take_spare_task(core_);
    item.job = &task;  // The item frees the job if the attributes cannot be set.
    task.set(options, token_for<Callable&>(), std::forward<F>(callable));
    const Accepted accepted = enqueue(core_, item, options, room, until);
    if (!accepted) task.give_back_to<F>(callable);
    return accepted;
  }

  template <class Iterator, class End>
  [[nodiscard]] Result<std::size_t> hand_over_all(Iterator first, End last, Room room,
                                                  const Until& until) const {
    Result<std::size_t> all;
    while (first != last && !all.error) {
      PoolBatch batch;
      [[maybe_unused]] const auto again = position_of(first);
      for (; first != last && !batch.full(); ++first) {
        batch.add([&] { return item_of(*first); });
      }
      const Result<std::size_t> some = enqueue(core_, batch.items(), room, until);
      all.value += some.value;
      all.error = some.error;
      if constexpr (MovesOutOfElements<Iterator>) {
        give_back(batch.items(), some.value, again);
      }
    }
    return all;
  }
  template <class Iterator, class End>
  [[nodiscard]] Result<std::size_t> hand_over_all(const SubmitOptions& options, Iterator first,
                                                  End last, Room room, const Until& until) const {
    Result<std::size_t> all;
    for (; first != last; ++first, ++all.value) {
      all.error = hand_over(options, room, until, *first).error;
      if (all.error) break;
    }
    return all;
  }
  // `options` may be a SubmitOptions. Moves the elements of an rvalue range that is not a view.
  template <class Range, class... Options>
  [[nodiscard]] Result<std::size_t> in_bulk(Range&& callables, Room room, const Until& until,
                                            const Options&... options) const {
    auto first = std::ranges::begin(callables);
    auto last = std::ranges::end(callables);
    if constexpr (std::is_lvalue_reference_v<Range> || std::ranges::view<std::decay_t<Range>>) {
      return hand_over_all(options..., std::move(first), std::move(last), room, until);
    } else {
      return hand_over_all(options..., std::move_iterator(std::move(first)),
                           std::move_sentinel(std::move(last)), room, until);
    }
  }

  template <class F>
  [[nodiscard]] Result<TaskOf<F>> start(Room room, const Until& until, F&& callable) const {
    return start_in_context(std::forward<F>(callable), [&]<class G>(G&& given) {
      using Call = PoolCall<std::decay_t<G>, PoolResult<std::decay_t<G>&>>;
      auto* job = new Call(root_of(core_), PoolJob::Kind::on_heap, token_for<std::decay_t<G>&>(),
                           std::forward<G>(given));
      TaskOf<F> task(job);
      PoolItem item(*job);
      return started_or_given_back(std::move(task), enqueue(core_, item, room, until),
                                   std::forward<G>(given), *job);
    });
  }
  template <class F>
  [[nodiscard]] Result<TaskOf<F>> start(const SubmitOptions& options, Room room, const Until& until,
                                        F&& callable) const {
    return start_in_context(std::forward<F>(callable), [&]<class G>(G&& given) {
      using Call = AttributedCall<std::decay_t<G>, PoolResult<std::decay_t<G>&>>;
      auto* job =
          new Call(root_of(core_), options, token_for<std::decay_t<G>&>(), std::forward<G>(given));
      TaskOf<F> task(job);
      PoolItem item(*job);
      job->watch_deadline();
      return started_or_given_back(std::move(task), enqueue(core_, item, options, room, until),
                                   std::forward<G>(given), *job);
    });
  }

  template <class F>
  PoolResult<F&> run(F& callable) const {
    if (is_empty_callable<std::remove_cv_t<F>>(callable)) throw_if_refused(Errc::empty_task);
    CarriedCall<F> call(callable);
    PoolCall<CarriedCall<F>&, PoolResult<F&>> job(root_of(core_), PoolJob::Kind::on_stack,
                                                  token_for<F&>(), call);
    PoolItem item(job);
    throw_if_refused(enqueue_and_wait(core_, item, job));
    return job.take();
  }

  // Throws std::system_error, with the pool's name if any, unless the task was accepted.
  void throw_if_refused(const Accepted& accepted) const {
    if (!accepted) [[unlikely]]
      throw_refusal(core_, accepted.error);
  }
  // Returns the started task; throws if the pool refused it.
  template <class R>
  [[nodiscard]] PoolTask<R> started(Result<PoolTask<R>> result) const {
    throw_if_refused(result.error);
    return std::move(result.value);
  }
  template <class R>
  [[nodiscard]] InTime<R> in_time(const Until& until, Result<PoolTask<R>> result) const {
    if (result.error == Errc::timed_out || result.error == Errc::cancelled) return {};
    PoolTask<R> task = started(std::move(result));
    if (!task.wait_until(until)) {
      (void)task.cancel();
      return {};
    }
    if constexpr (std::is_void_v<R>) {
      task.get();
      return true;
    } else {
      return task.get();
    }
  }

 private:
  [[nodiscard]] static Accepted enqueue_slowly(pool::PoolCore& core, PoolItem& item, Room room,
                                               const Until& until = {});
  [[noreturn]] static void throw_refusal(const pool::PoolCore& core, std::error_code why);
  [[nodiscard]] static const pool::PoolCore& root_of(const pool::PoolCore& core) noexcept;
  // Returns the pool's token. Throws std::bad_alloc if the pool cannot allocate it.
  [[nodiscard]] static std::stop_token stop_token_of(pool::PoolCore& core);
  [[nodiscard]] static AttributedTask& take_spare_task(pool::PoolCore& core);

  // Calls `start_job` with the callable, wrapped in a CarryingCall if the caller has a context.
  template <class F, class StartJob>
  [[nodiscard]] Result<TaskOf<F>> start_in_context(F&& callable, StartJob start_job) const {
    using Callable = std::decay_t<F>;
    if (is_empty_callable<Callable>(callable)) return refused_empty<F>();
    if (ContextNode::may_have_one()) [[unlikely]] {
      if (ContextShare context = ContextShare::of_caller()) {
        CarryingCall<Callable> carrying{std::move(context), std::forward<F>(callable)};
        Result<TaskOf<F>> result = start_job(std::move(carrying));
        if (result.error) detail::give_back<F>(callable, carrying.callable);
        return result;
      }
    }
    return start_job(std::forward<F>(callable));
  }
  template <class R, class G, class Call>
  [[nodiscard]] static Result<PoolTask<R>> started_or_given_back(PoolTask<R> task,
                                                                 const Accepted& accepted,
                                                                 G&& given, Call& job) {
    if (accepted) return {std::move(task), {}};
    detail::give_back<G>(given, job.refused());
    return {{}, accepted.error};
  }

  // A successful first push leaves the item empty, so nothing destroys it. After a failed push, an
  // Owner destroys the item.
  union Unaccepted {
    struct Owner {
      PoolItem& item;
      ~Owner() { item.~PoolItem(); }
    };

    PoolItem item;

    ~Unaccepted() {}  // NOLINT(modernize-use-equals-default): the defaulted one is deleted.
  };

  // Returns an empty token for a callable that takes no token.
  template <class F>
  [[nodiscard]] std::stop_token token_for() const {
    if constexpr (kTakesStop<F>) return stop_token_of(core_);
    return {};
  }
  template <class F>
  [[nodiscard]] PoolItem item_of(F&& callable) const {
    using Callable = std::decay_t<F>;
    if constexpr (!kTakesStop<Callable&>) {
      return PoolItem(std::in_place, std::forward<F>(callable));
    } else {
      if (is_empty_callable<Callable>(callable)) return {};
      std::stop_token token = stop_token_of(core_);  // May throw, so it precedes the move.
      return PoolItem(std::in_place,
                      StoppableTask<Callable>{std::forward<F>(callable), std::move(token)});
    }
  }
  // Refuses an empty callable; the pool counts this refusal like any other.
  template <class F>
  [[nodiscard]] Result<TaskOf<F>> refused_empty() const {
    PoolItem empty;
    return {{}, enqueue(core_, empty, Room::now, {}).error};
  }
  template <class Iterator>
  [[nodiscard]] static auto position_of(const Iterator& iterator) {
    if constexpr (MovesOutOfElements<Iterator>) {
      return iterator;
    } else {
      return std::ignore;
    }
  }
  // Moves the callables of a batch, beginning with item `first`, back to their owners.
  template <class Iterator>
  static void give_back(std::span<PoolItem> items, std::size_t first, Iterator element) {
    using F = std::remove_reference_t<std::iter_reference_t<Iterator>>;
    std::size_t number = 0;
    for (PoolItem& item : items) {
      if (number++ >= first) {
        F&& owner = *element;
        item.give_back_to<F>(owner);
      }
      ++element;
    }
  }

  pool::PoolCore& core_;
};

}  // namespace weft::detail
