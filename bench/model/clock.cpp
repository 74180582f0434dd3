#include "bench/model/clock.hpp"

#include <stdexcept>
#include <utility>

namespace weft::bench::model {

namespace {

void park_here(Seat& seat) {
  seat.waits = true;
  seat.waker = detail::current();
  detail::park({[](void*) noexcept {}, nullptr}, detail::WaitReason::event);
}

void set_going(Seat& seat) {
  seat.waits = false;
  ++seat.turn;
  detail::wake(seat.waker);
}

}  // namespace

void Clock::add(Seat& seat, std::function<void()> body) {
  seats_.push_back(&seat);
  enter(seat, 0, false);
  living_.go([&seat, live = std::move(body)] {
    park_here(seat);
    try {
      live();
    } catch (const Over&) {
      return;
    }
    throw std::logic_error("a party of the model ended before the run was over");
  });
  detail::yield();  // Until it waits.
}

void Clock::run() {
  Seat& first = take_next();
  director_.waker = detail::current();
  set_going(first);
  park_here(director_);
  living_.wait();
}

void Clock::stop() {
  is_over_ = true;
  for (Seat* seat : seats_) {
    if (seat->waits) set_going(*seat);
  }
  set_going(director_);
  throw Over();
}

void Clock::enter(Seat& seat, Time time, bool is_call) {
  appointments_.push({time, ++numbers_, &seat, seat.turn, is_call});
}

void Clock::drop_void() {
  while (!appointments_.empty() && appointments_.top().turn != appointments_.top().seat->turn) {
    appointments_.pop();
  }
}

Seat& Clock::take_next() {
  drop_void();
  if (appointments_.empty()) throw std::logic_error("the model stands still: nobody waits");
  const Appointment next = appointments_.top();
  appointments_.pop();
  now_ = next.time;
  next.seat->was_called = next.is_call;
  return *next.seat;
}

void Clock::let_next_run(Seat& seat) {
  Seat& next = take_next();
  if (&next == &seat) {
    ++seat.turn;
    return;
  }
  set_going(next);
  park_here(seat);
  if (is_over_) throw Over();
}

void Clock::wait_until(Seat& seat, Time time) {
  if (is_over_) throw Over();
  drop_void();
  // Most steps are over before anybody else has something to do.
  if (appointments_.empty() || time < appointments_.top().time) {
    now_ = time;
    return;
  }
  enter(seat, time, false);
  let_next_run(seat);
}

bool Clock::wait_for_call(Seat& seat, Time limit) {
  if (is_over_) throw Over();
  if (limit != kNever) enter(seat, limit, false);
  let_next_run(seat);
  return seat.was_called;
}

void Clock::call_at(Seat& seat, Time time) { enter(seat, time, true); }

}  // namespace weft::bench::model
