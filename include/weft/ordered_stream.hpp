// Runs tasks concurrently and delivers their results in order.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>
#include <weft/accepted.hpp>
#include <weft/channel.hpp>
#include <weft/context.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/give_back.hpp>
#include <weft/detail/group_pool.hpp>
#include <weft/detail/group_stop.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/semaphore.hpp>
#include <weft/spawn_options.hpp>
#include <weft/submit_options.hpp>
#include <weft/task_group.hpp>

namespace weft {

// Concurrently runs tasks that return an R. Passes the results to one function, the sink, in the
// order in which the tasks were submitted. The sink runs in its own fiber. A task is in progress
// until its result has been delivered; at most `limit` tasks are in progress at once. An exception
// from a task or the sink cancels the stream's context, and drops the results of later tasks.
//
// A stream with a FiberPool runs its tasks, but not the sink, in the pool; the pool must outlive
// the stream. If the pool drops an accepted task, the stream reports std::errc::operation_canceled
// as the task's exception. By default, other tasks can use the slot of a pool's task that waits in
// submit() or finish(). A stop request to the pool cancels the stream's context if a running task
// of the stream has a parameter for that context or a stop token.
// Context: fibers and plain threads; only one caller at a time may submit or finish. All submit
// functions, finish(), finish_until() and the destructor park.
// Ordering: submit() synchronizes with the start of its task. The end of the task synchronizes with
// the call of the sink. That call synchronizes with the return of finish().
template <class R>
class OrderedStream {
  static_assert(std::is_object_v<R>, "a stream of results needs results");

 public:
  // Makes a stream that delivers results to `sink`. `fibers` applies to the sink's fiber and,
  // without a pool, to the tasks' fibers. The characters of `fibers.name` must outlive the stream.
  // Throws: std::invalid_argument if `limit` is 0 or too large for a Channel; whatever go() throws.
  template <std::invocable<R> Sink>
  OrderedStream(std::size_t limit, Sink sink, const SpawnOptions& fibers = {})
      : OrderedStream(detail::GroupPool(), limit, std::move(sink), fibers) {}
  template <std::invocable<R> Sink>
  OrderedStream(FiberPool& pool, std::size_t limit, Sink sink, const SpawnOptions& fibers = {})
      : OrderedStream(detail::group_pool(pool), limit, std::move(sink), fibers) {}
  // Drops undelivered results, and waits for all tasks and for the sink.
  ~OrderedStream() {
    // Relaxed: if the deliverer sees the store late, it just delivers more results.
    is_abandoned_.store(true, detail::relaxed);
    context_.cancel();
    in_order_.close();
    if (pool_) (void)wait_for_deliverer({});
  }
  OrderedStream(const OrderedStream&) = delete;
  OrderedStream& operator=(const OrderedStream&) = delete;

  // Starts a task, which takes no argument, a std::stop_token, or the stream's Context&. Parks
  // while `limit` tasks are in progress. If the pool is full, submit() acts as the pool's on_full
  // specifies; submit_until() parks if it has a deadline or a stop token. The stream refuses tasks
  // with Errc::closed after finish(), and with Errc::cancelled after an exception or a cancel().
  // The pool refuses tasks as in FiberPool::submit(). A refused task stays unchanged if its type is
  // nothrow-movable.
  // Throws: whatever go() throws.
  template <class F>
  Accepted submit(F&& task) {
    return submit_until({}, std::forward<F>(task));
  }
  // Works like submit(), but returns Errc::timed_out or cancelled if `until` ended the wait.
  // Throws: whatever go() throws.
  template <class F>
  Accepted submit_until(const Until& until, F&& task) {
    return start(until, std::forward<F>(task), [&](detail::Task& member) {
      return pool_.submit(room_for(until), until, member);
    });
  }
  // Submits a task to the stream's pool, with options as for TaskGroup::spawn(). If a stop request
  // or deadline drops the task, the stream reports operation_canceled as the task's exception.
  // Throws: std::invalid_argument if there is no pool; whatever FiberPool::submit() throws.
  template <class F>
  Accepted submit(const SubmitOptions& options, F&& task) {
    return submit_until(options, {}, std::forward<F>(task));
  }
  // Works like submit(), but returns Errc::timed_out or cancelled if `until` ended the wait.
  // Throws: std::invalid_argument if there is no pool; whatever FiberPool::submit() throws.
  template <class F>
  Accepted submit_until(const SubmitOptions& options, const Until& until, F&& task) {
    if (!pool_) {
      WEFT_THROW(std::invalid_argument("weft::OrderedStream::submit: options without a pool"));
    }
    const auto submit = [&]<class G>(G&& given, const std::stop_source& own) {
      return start(until, std::forward<G>(given), [&](detail::Task& member) {
        return pool_.submit(options, own, room_for(until), until, member);
      });
    };
    return detail::submit_with_source(std::forward<F>(task), submit);
  }

  // Refuses later tasks, and parks until every result has been delivered or dropped.
  // Throws: in the first call, the first exception (in submission order) of a task or the sink.
  void finish() {
    (void)finish_until({});
    if (deliverer_.joinable()) deliverer_.join();
  }
  // Works like finish(), but returns false if `until` ended the wait. Only finish() throws.
  // Throws: nothing.
  [[nodiscard]] bool finish_until(const Until& until) {
    is_finishing_ = true;
    in_order_.close();
    return wait_for_deliverer(until);
  }

  // Returns the context of the tasks; an exception from a task or the sink cancels it.
  [[nodiscard]] Context& context() noexcept { return context_; }

 private:
  static std::size_t checked(std::size_t limit) {
    if (limit > 0) return limit;
    WEFT_THROW(std::invalid_argument("weft::OrderedStream: limit = 0; must be at least 1"));
  }

  // Holds one of the `limit` places for tasks; the destructor frees it unless keep() was called.
  class Place {
   public:
    explicit Place(Semaphore& places) noexcept : places_(&places) {}
    ~Place() {
      if (places_ != nullptr) places_->release();
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    void keep() noexcept { places_ = nullptr; }

   private:
    Semaphore* places_;
  };

  template <class F>
  struct Running {
    using Shown = F;
    OrderedStream& stream;
    F task;
    R operator()() {
      Context& context = stream.context_;
      [[maybe_unused]] const detail::PoolStopScope<F> pool_stop(stream.pool_, context);
      const ContextScope scope(context);
      WEFT_TRY { return detail::invoke_in(context, task); }
      WEFT_CATCH_ALL {
        context.cancel(std::current_exception());
        WEFT_RETHROW;
      }
    }
  };

  // Holds the outcome of a pool task; a dropped task has the exception operation_canceled.
  struct Outcome {
    std::optional<R> value;
    std::exception_ptr exception;
    Event ended;
  };
  template <class F>
  struct Member {
    using Shown = F;
    Running<F> running;
    std::shared_ptr<Outcome> outcome;

    Member(Running<F> its_running, std::shared_ptr<Outcome> its_outcome)
        : running(std::move(its_running)), outcome(std::move(its_outcome)) {}
    Member(Member&&) = default;
    Member& operator=(Member&&) = delete;
    ~Member() {
      if (outcome == nullptr) return;
      const auto dropped = std::make_error_code(std::errc::operation_canceled);
      outcome->exception = std::make_exception_ptr(std::system_error(dropped));
      outcome->ended.set();
    }
    void operator()() {
      const std::shared_ptr<Outcome> result = std::exchange(outcome, nullptr);
      WEFT_TRY { result->value.emplace(running()); }
      WEFT_CATCH_ALL { result->exception = std::current_exception(); }
      result->ended.set();
    }
  };
  // Refers to a task of the stream, which is a fiber or a task in the pool.
  struct Pending {
    JoinHandle<R> handle;
    std::shared_ptr<Outcome> outcome;

    void wait() { outcome == nullptr ? (void)handle.wait_until({}) : outcome->ended.wait(); }
    R get() {
      if (outcome == nullptr) return handle.join();
      outcome->ended.wait();
      if (outcome->exception) std::rethrow_exception(outcome->exception);
      return std::move(*outcome->value);
    }
  };

  template <class Sink>
  OrderedStream(detail::GroupPool pool, std::size_t limit, Sink sink, const SpawnOptions& fibers)
      : pool_(pool),
        fibers_(fibers),
        places_(checked(limit)),
        in_order_(limit),
        deliverer_(
            weft::spawn(fibers, [this, sink = std::move(sink)]() mutable { deliver(sink); })) {}

  [[nodiscard]] static detail::Room room_for(const Until& until) noexcept {
    return until.is_never() ? detail::Room::as_configured : detail::Room::awaited;
  }
  // Waits for one of the `limit` places and starts the task, which then holds the place. `submit`
  // passes the task to the pool, if there is one.
  template <class F, class Submit>
  Accepted start(const Until& until, F&& task, Submit submit) {
    using RunningOf = Running<std::decay_t<F>>;
    using MemberOf = Member<std::decay_t<F>>;
    if (is_finishing_) return Errc::closed;
    const auto acquire = [&]() noexcept { return places_.try_acquire_until(until); };
    if (!places_.try_acquire() && !pool_.wait_without_slot(acquire)) {
      return until.reason();
    }
    Place place(places_);
    if (context_.is_over()) return Errc::cancelled;
    Pending pending;
    if (!pool_) {
      pending.handle = weft::spawn(fibers_, RunningOf{*this, std::forward<F>(task)});
    } else {
      pending.outcome = std::make_shared<Outcome>();
      detail::Task member(MemberOf(RunningOf{*this, std::forward<F>(task)}, pending.outcome));
      const Accepted accepted = submit(member);
      if (!accepted) {
        detail::give_back<F>(task, member.callable<MemberOf>().running.task);
        return accepted;
      }
    }
    place.keep();
    // At most `limit` tasks hold places, and the channel has room for each, so send() never parks.
    (void)in_order_.send(std::move(pending));
    return {};
  }
  bool wait_for_deliverer(const Until& until) {
    return !deliverer_.joinable() ||
           pool_.wait_without_slot([&]() noexcept { return deliverer_.wait_until(until); });
  }

  template <class Sink>
  void deliver(Sink& sink) {
    std::exception_ptr first;
    for (Pending& pending : in_order_) {
      WEFT_TRY {
        if (first || is_abandoned_.load(detail::relaxed)) {
          pending.wait();
        } else {
          R result = pending.get();
          if (!is_abandoned_.load(detail::relaxed)) std::invoke(sink, std::move(result));
        }
      }
      WEFT_CATCH_ALL {
        first = std::current_exception();
        context_.cancel(first);
      }
      places_.release();
    }
    if (first) std::rethrow_exception(first);
  }

  const detail::GroupPool pool_;  // Null if each task has its own fiber.
  const SpawnOptions fibers_;
  Context context_;
  detail::Atomic<bool> is_abandoned_{false};
  bool is_finishing_ = false;  // Accessed by one caller at a time, which submits or finishes.
  Semaphore places_;
  Channel<Pending> in_order_;
  JoinHandle<void> deliverer_;  // Destroyed first; its destructor waits for the sink's fiber.
};

}  // namespace weft
