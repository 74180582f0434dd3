// Simulated time, and the parties that live in it.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>
#include <weft/detail/waist.hpp>
#include <weft/wait_group.hpp>

#include "bench/model/units.hpp"

namespace weft::bench::model {

// Where a party waits for its time to come.
struct Seat {
  detail::Waker waker;
  std::uint64_t turn = 0;  // Grows whenever it is set going: older appointments are void then.
  bool waits = false;
  bool was_called = false;
};

// Discrete events. Every party (a simulated worker, a source of requests) is a fiber of a runtime
// with one worker, so a simulated worker is plain code that says how long each step takes. One
// party runs at a time: the one whose time is the earliest, or of those the one that was first to
// ask for it. So a run depends on nothing but its arguments.
class Clock {
 public:
  // Thrown by every wait when the run is over; ends the party.
  struct Over {};

  [[nodiscard]] Time now() const noexcept { return now_; }

  // Before run(): a party, which `body` is the life of.
  void add(Seat& seat, std::function<void()> body);
  // From a fiber of a runtime with one worker: lets all live until one of them calls stop().
  void run();
  // By a party: throws Over, here and in all others.
  [[noreturn]] void stop();

  // By a party: goes on at `time`.
  void wait_until(Seat& seat, Time time);
  // The same, but call_at() may end it. True if it did.
  [[nodiscard]] bool wait_for_call(Seat& seat, Time limit);
  // A party that waits for a call gets it at `time`, unless another comes earlier.
  void call_at(Seat& seat, Time time);

 private:
  struct Appointment {
    Time time;
    std::uint64_t number;
    Seat* seat;
    std::uint64_t turn;
    bool is_call;
    friend bool operator>(const Appointment& a, const Appointment& b) {
      return a.time != b.time ? a.time > b.time : a.number > b.number;
    }
  };

  void enter(Seat& seat, Time time, bool is_call);
  void drop_void();
  void let_next_run(Seat& seat);
  Seat& take_next();

  Time now_ = 0;
  bool is_over_ = false;
  std::uint64_t numbers_ = 0;
  std::priority_queue<Appointment, std::vector<Appointment>, std::greater<>> appointments_;
  std::vector<Seat*> seats_;
  Seat director_;  // Who called run().
  WaitGroup living_;
};

}  // namespace weft::bench::model
