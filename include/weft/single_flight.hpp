// Runs a callable once for all callers that need its result.
#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/guard.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/event.hpp>
#include <weft/mutex.hpp>
#include <weft/spawn_options.hpp>
#include <weft/until.hpp>
#include <weft/wait_group.hpp>

namespace weft {

// Works like Go's singleflight: concurrent calls for one key share one run of the callable, and its
// result or exception. Nothing is cached: a call after the end of the run begins another run.
//
//   SingleFlight<std::string, Page> pages;
//   const Page page = pages.run("start", [] { return load("start"); });
//
// The run has its own fiber, without the context of the call that began it. A caller that stops
// waiting does not end the run, so the callable must own what it uses. The callable must not call
// the SingleFlight for its own key. `Hash` and `Equal` run under a mutex, so they must not call the
// SingleFlight.
// Context: fibers and plain threads of a runtime; all calls and the destructor park.
// Throws: what Hash and Equal throw.
// Ordering: the end of a run synchronizes with each call that returns its result.
// Lifetime: the destructor waits for all runs. No call may be in progress when it begins.
template <class Key, class Value, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
class SingleFlight {
  static_assert(std::is_copy_constructible_v<Value>, "each caller is given a copy");

 public:
  SingleFlight() = default;
  // Starts each run's fiber with these options. The text of `fibers.name` must outlive this object.
  explicit SingleFlight(const SpawnOptions& fibers) : fibers_(fibers) {}
  SingleFlight(const SingleFlight&) = delete;
  SingleFlight& operator=(const SingleFlight&) = delete;
  // Waits until every run has ended.
  ~SingleFlight() { runs_.wait(); }

  // Parks until the run for `key` has ended; begins a run if there is none. Returns a copy of the
  // result.
  // Throws: also what callable, go(), or a copy of key, callable or result throws; std::bad_alloc.
  template <std::invocable F>
  [[nodiscard]] Value run(const Key& key, F&& callable) {
    return *run_until(key, {}, std::forward<F>(callable));
  }
  // Waits like run(). Returns nothing if `until` ended the wait; the run continues.
  // Throws: whatever run() throws.
  template <std::invocable F>
  [[nodiscard]] std::optional<Value> run_until(const Key& key, const Until& until, F&& callable) {
    const std::shared_ptr<Flight> flight = join_or_begin(key, std::forward<F>(callable));
    if (!flight->ended.wait_until(until)) return std::nullopt;
    if (flight->failure != nullptr) std::rethrow_exception(flight->failure);
    return std::optional<Value>(*flight->result);
  }
  // Makes the next call for `key` begin a new run, even if a run is in progress. Returns false if
  // there is no run to forget. Parks only while another call holds the mutex.
  bool forget(const Key& key) {
    const detail::Guard guard(mutex_);
    return flights_.erase(key) > 0;
  }

 private:
  // Holds the state of one run. No member is atomic, because the event orders all accesses.
  struct Flight {
    Event ended;
    std::optional<Value> result;
    std::exception_ptr failure;
  };

  template <class F>
  std::shared_ptr<Flight> join_or_begin(const Key& key, F&& callable) {
    std::shared_ptr<Flight> flight;
    {
      const detail::Guard guard(mutex_);
      const auto [found, is_new] = flights_.try_emplace(key);
      if (!is_new) return found->second;
      WEFT_TRY { found->second = std::make_shared<Flight>(); }
      WEFT_CATCH_ALL {
        flights_.erase(found);
        WEFT_RETHROW;
      }
      flight = found->second;
    }
    // Ends the flight even if the run cannot begin, so that the callers that joined it wake.
    WEFT_TRY {
      runs_.go(fibers_,
               [this, flight, key, owned = std::decay_t<F>(std::forward<F>(callable))]() mutable {
                 fly(*flight, key, owned);
               });
    }
    WEFT_CATCH_ALL {
      flight->failure = std::current_exception();
      end(*flight, key);
    }
    return flight;
  }
  template <class F>
  void fly(Flight& flight, const Key& key, F& callable) {
    WEFT_TRY { flight.result.emplace(std::invoke(callable)); }
    WEFT_CATCH_ALL { flight.failure = std::current_exception(); }
    end(flight, key);
  }
  void end(Flight& flight, const Key& key) {
    {
      const detail::Guard guard(mutex_);
      // After forget(), the map may have another flight for this key.
      const auto found = flights_.find(key);
      if (found != flights_.end() && found->second.get() == &flight) flights_.erase(found);
    }
    flight.ended.set();
  }

  const SpawnOptions fibers_ = {};
  Mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<Flight>, Hash, Equal> flights_ WEFT_GUARDED_BY(mutex_);
  WaitGroup runs_;
};

}  // namespace weft
