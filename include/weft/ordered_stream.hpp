// Work that is done out of order and handed on in order.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <weft/channel.hpp>
#include <weft/context.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/go.hpp>
#include <weft/semaphore.hpp>
#include <weft/task_group.hpp>

namespace weft {

// Runs tasks at the same time, each with a result R, and gives the results to one function, the
// sink, one after the other, in the order of the submits. The sink runs in a fiber of its own.
// At most `limit` tasks run or have a result that waits for its turn.
// When a task or the sink throws, the stream's context is cancelled, so that the others can stop
// early. Results from before the task that threw are still delivered, later ones are dropped, and
// finish() throws the exception; that of the earliest task, if there are several.
// submit() and finish() are called by one caller, fiber or plain thread. Synchronizes: a submit
// with the start of its task, the task's end with the sink's call, the sink with the return of
// finish().
template <class R>
class OrderedStream {
  static_assert(std::is_object_v<R>, "a stream of results needs results");

 public:
  // Throws std::invalid_argument for a limit of 0, and what go() throws.
  template <std::invocable<R> Sink>
  OrderedStream(std::size_t limit, Sink sink)
      : places_(checked(limit)),
        in_order_(limit),
        deliverer_(weft::spawn([this, sink = std::move(sink)]() mutable { deliver(sink); })) {}
  // Drops what has not been delivered, and waits for what runs.
  ~OrderedStream() {
    // Relaxed: how soon the sink hears of it does not matter.
    is_abandoned_.store(true, detail::relaxed);
    context_.cancel();
    in_order_.close();
  }
  OrderedStream(const OrderedStream&) = delete;
  OrderedStream& operator=(const OrderedStream&) = delete;

  // Starts a task, which takes nothing, a std::stop_token, or the stream's Context&. Parks while
  // `limit` others are under way. False, and nothing is started, once a task or the sink has
  // thrown. Throws as go().
  template <class F>
  bool submit(F&& task) {
    return submit_until({}, std::forward<F>(task));
  }
  // False also when `until` ended the wait.
  template <class F>
  bool submit_until(const Until& until, F&& task) {
    if (!places_.try_acquire_until(until)) return false;
    if (context_.is_over()) {
      places_.release();
      return false;
    }
    // There are as many places in the channel as permits: it does not park.
    return in_order_.send(spawn(std::forward<F>(task)));
  }

  // Parks until every result has been delivered; throws the first exception. Nothing can be
  // submitted afterwards.
  void finish() {
    in_order_.close();
    deliverer_.join();
  }
  // The same, without an exception: false when `until` ended the wait. finish() must follow.
  [[nodiscard]] bool finish_until(const Until& until) {
    in_order_.close();
    return deliverer_.wait_until(until);
  }

  [[nodiscard]] Context& context() noexcept { return context_; }

 private:
  static std::size_t checked(std::size_t limit) {
    if (limit > 0) return limit;
    WEFT_THROW(std::invalid_argument("weft::OrderedStream: limit = 0, at least 1"));
  }

  template <class F>
  JoinHandle<R> spawn(F&& task) {
    WEFT_TRY {
      return weft::spawn([this, task = std::forward<F>(task)]() mutable -> R {
        WEFT_TRY { return detail::invoke_in(context_, task); }
        WEFT_CATCH_ALL {
          context_.cancel(std::current_exception());
          WEFT_RETHROW;
        }
      });
    }
    WEFT_CATCH_ALL {
      places_.release();
      WEFT_RETHROW;
    }
  }

  template <class Sink>
  void deliver(Sink& sink) {
    std::exception_ptr first;
    for (JoinHandle<R>& handle : in_order_) {
      WEFT_TRY {
        if (first || is_abandoned_.load(detail::relaxed)) {
          (void)handle.wait_until({});
        } else {
          R result = handle.join();
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

  Context context_;
  detail::Atomic<bool> is_abandoned_{false};
  Semaphore places_;
  Channel<JoinHandle<R>> in_order_;
  JoinHandle<void> deliverer_;  // Ends first: its destructor waits.
};

}  // namespace weft
