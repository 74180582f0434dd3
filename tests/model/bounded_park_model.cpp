// <weft/detail/bounded_park.hpp>: a park that a notifier, the clock and a stop request may end.
// Exactly one of them ends it, and not before the park has begun. A stop request finishes all its
// steps before the caller leaves the parked stack.
#include <weft/detail/bounded_park.hpp>

#include <weft/detail/waiter.hpp>

#include <optional>

#include "tests/model/model_waist.hpp"

namespace {

using weft::Deadline;
using weft::Until;
using weft::detail::acq_rel;
using weft::detail::acquire;
using weft::detail::Atomic;
using weft::detail::BoundedPark;
using weft::detail::Claim;
using weft::detail::release;
using weft::detail::SpinLock;
using weft::detail::Waiter;
using weft::detail::WaitList;
using weft::detail::WaitReason;
using weft::model::call_on_own_stack;
using weft::model::Data;
using weft::model::expect;
using weft::model::fault;
using weft::model::perhaps;
using weft::model::World;

enum Fault {
  kNone,
  kRequestDoesNotMeetThePark,
  kRequestDoesNotClaim,
  kNotifierDoesNotClaim,
  kLeavesWaiterLinked,
  kLeavesDuringRequest,
};

// Replaces std::stop_source and the stop_callback of one park, which the checker cannot inspect. A
// request runs the callback if it is registered; the removal of a running callback waits for its
// end. BoundedPark also makes a real callback, for a source without stop requests.
class StopCallback {
 public:
  void add(BoundedPark& park) {
    park_ = &park;
    state_.store(kThere, release);
  }
  void request() {
    std::uint32_t expected = kThere;
    if (!state_.compare_exchange_strong(expected, kRunning, acq_rel, acquire)) return;
    if (fault == kRequestDoesNotMeetThePark) {
      if (park_->claim().try_claim(Claim::kStop)) weft::detail::wake(waker);
    } else if (fault == kRequestDoesNotClaim) {
      weft::detail::wake(waker);
    } else {
      park_->request();
    }
    state_.store(kOver, release);
  }
  void remove() {
    std::uint32_t expected = kThere;
    if (state_.compare_exchange_strong(expected, kOver, acq_rel, acquire)) return;
    while (fault != kLeavesDuringRequest && state_.load(acquire) == kRunning) {
      weft::model::let_others_run();
    }
    state_.store(kNotThere, release);
  }
  weft::detail::Waker waker;

 private:
  enum State : std::uint32_t { kNotThere, kThere, kRunning, kOver };
  BoundedPark* park_ = nullptr;
  Atomic<std::uint32_t> state_{kNotThere};
};

enum Kind { kStop, kStopAndNotifier, kAll, kThread };

// One caller parks `kRounds` times; other threads try to end its parks.
template <int kRounds, Kind kKind>
struct Parks : rl::test_suite<Parks<kRounds, kKind>, 5> {
  static constexpr bool kIsTimed = kKind == kAll || kKind == kThread;
  World world{1, kIsTimed};
  SpinLock lock;
  WaitList waiters;
  std::stop_source never;
  StopCallback callback;
  Data<int> note{0};
  // Not part of the modelled program.
  bool over = false;
  int notified = 0;
  int notifications = 0;

  void before() {
    if (kKind == kThread) world.make_thread(0);
  }
  void thread(unsigned index) {
    if (index < 2) {
      world.run(index, [&](unsigned) {
        for (int i = 0; i < kRounds; ++i) {
          Claim::Winner winner = Claim::kNobody;
          call_on_own_stack([&] { winner = wait(); });
          conclude(winner);
        }
        over = true;
      });
    } else if (index == 2) {
      while (!over) {
        if (perhaps()) callback.request();
        weft::model::let_others_run();
      }
    } else if (index == 3) {
      while (kKind != kStop && !over) {
        if (perhaps()) notify();
        weft::model::let_others_run();
      }
    } else if (kIsTimed) {
      world.run_clock();
    }
  }

  // Waits as wait_in_until() does.
  Claim::Winner wait() {
    const std::stop_token token = never.get_token();
    const Deadline deadline =
        kIsTimed ? Deadline::at_nanoseconds(weft::model::kSoon) : Deadline::never();
    Waiter self;
    lock.lock();
    BoundedPark bounded({deadline, token});
    self.waker = callback.waker = weft::detail::current();
    self.claim = &bounded.claim();
    waiters.push_back(self);
    callback.add(bounded);
    const Claim::Winner winner = bounded.park(weft::detail::unlock_after(lock), WaitReason::none);
    callback.remove();
    if (winner != Claim::kNotifier && fault != kLeavesWaiterLinked) {
      lock.lock();
      waiters.erase_if_linked(self);
      lock.unlock();
    }
    return winner;
  }
  void conclude(Claim::Winner winner) {
    expect(winner != Claim::kNobody, "a park ended by itself");
    if (winner != Claim::kNotifier) return;
    ++notified;
    expect(note.get() == notified, "the note was not published by the wake");
  }
  void notify() {
    lock.lock();
    Waiter* waiter = waiters.front();
    if (fault != kNotifierDoesNotClaim) {
      waiter = waiters.claim_front();
    } else if (waiter != nullptr) {
      waiters.erase(*waiter);
    }
    lock.unlock();
    if (waiter == nullptr) return;
    note.set(++notifications);
    weft::detail::wake(waiter->waker);
  }
  void after() { expect(notified == notifications, "a notification was lost, or answered twice"); }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "bounded_park",
             {random_search<Parks<1, kStop>>("a stop request", 40'000),
              random_search<Parks<2, kStopAndNotifier>>("notifier against stop", 40'000),
              random_search<Parks<2, kAll>>("notifier, clock and stop", 60'000),
              random_search<Parks<2, kThread>>("a plain thread", 40'000)},
             {weft::model::relaxed_orders(),
              broken_by(kRequestDoesNotMeetThePark, "a request that does not meet the park"),
              broken_by(kRequestDoesNotClaim, "a request that does not claim"),
              broken_by(kNotifierDoesNotClaim, "the notifier does not claim"),
              broken_by(kLeavesWaiterLinked, "a waiter left in the list"),
              broken_by(kLeavesDuringRequest, "a stack left during a request")})
      .run(count, arguments);
}
