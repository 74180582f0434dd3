// The counts of one worker.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// A count that only one worker writes; any thread may read it.
// Order
//   [count]  add_one() stores value_ (release) -> get() loads it (acquire): if Shared::live()
//            counts a fiber as finished, it also counts that fiber as spawned.
class Counter {
 public:
  void add_one() noexcept { add(1); }
  void add(std::uint64_t more) noexcept {
    // Relaxed load: the worker is the only writer.
    value_.store(value_.load(detail::relaxed) + more, detail::release);  // [count]
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(detail::acquire);  // [count]
  }

 private:
  detail::Atomic<std::uint64_t> value_{0};
};

struct WorkerCounters {
  Counter spawned;
  Counter finished;
  Counter switches;
  Counter steals;
  Counter sleeps;
  Counter polls;        // Checks of the descriptors, including sleeps in the event source.
  Counter timers;       // Waits that ended at their deadline.
  Counter parked_time;  // Nanoseconds asleep or resting, not including the current sleep.
};

}  // namespace weft::scheduler
