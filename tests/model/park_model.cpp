// <weft/detail/waiter.hpp>, Claim, scheduler/timers/timers.cpp and JoinCore: a waiter is published
// only on the other side of the switch. One wake ends each park, by a notifier or by the clock. No
// thread touches a waiter whose owner has continued.
#include <stop_token>  // Precedes the checker's headers, which define words of it.

#include <weft/detail/join_state.hpp>

#include <optional>

#include "tests/model/model_waist.hpp"

namespace {

using weft::Deadline;
using weft::detail::Claim;
using weft::detail::JoinCore;
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
  kPublishesEarly,
  kNotifierDoesNotClaim,
  kTouchesAfterWake,
  kLeavesWaiterLinked,
  kOmitsWake,
};

const Deadline kDeadline = Deadline::at_nanoseconds(weft::model::kSoon);

// Is the smallest primitive: waiters stay in a list until a notifier removes them.
class Row {
 public:
  // Returns false if the deadline passed.
  bool wait(Deadline deadline) {
    lock_.lock();
    Waiter self;
    if (fault == kPublishesEarly) return publish_and_wait(self);
    if (fault == kLeavesWaiterLinked && !deadline.is_never()) return leave_linked(self, deadline);
    return weft::detail::wait_in_until(waiters_, lock_, self, WaitReason::none, deadline) ==
           Claim::kNotifier;
  }
  // Returns false when there is no waiter.
  bool notify() {
    lock_.lock();
    Waiter* waiter = waiters_.front();
    if (fault != kNotifierDoesNotClaim) {
      waiter = waiters_.claim_front();
    } else if (waiter != nullptr) {
      waiters_.erase(*waiter);
    }
    lock_.unlock();
    if (waiter == nullptr) return false;
    if (fault != kOmitsWake) weft::detail::wake(waiter->waker);
    if (fault == kTouchesAfterWake) waiter->granted = true;
    return true;
  }
  unsigned notify_all() {
    lock_.lock();
    Waiter* chain = waiters_.claim_all();
    unsigned count = 0;
    for (Waiter* waiter = chain; waiter != nullptr; waiter = waiter->next) ++count;
    lock_.unlock();
    weft::detail::wake_chain(chain);
    return count;
  }

 private:
  bool publish_and_wait(Waiter& self) {
    self.waker = weft::detail::current();
    waiters_.push_back(self);
    lock_.unlock();
    weft::detail::park({[](void*) noexcept {}, nullptr}, WaitReason::none);
    return true;
  }
  bool leave_linked(Waiter& self, Deadline deadline) {
    Claim claim;
    self.waker = weft::detail::current();
    self.claim = &claim;
    waiters_.push_back(self);
    return weft::detail::park_until(weft::detail::unlock_after(lock_), WaitReason::none, deadline,
                                    claim) == Claim::kNotifier;
  }

  SpinLock lock_;
  WaitList waiters_;
};

enum Kind { kUntimed, kTimed, kTimedThreads, kAll };

// `kWaiters` callers wait, each `kRounds` times; one thread notifies until they are done.
template <unsigned kWaiters, int kRounds, Kind kKind>
struct Waits : rl::test_suite<Waits<kWaiters, kRounds, kKind>, 2 * kWaiters + 2> {
  World world{kWaiters, kKind != kUntimed};
  Row row;
  Data<int> note{0};
  // Not part of the modelled program.
  unsigned left = kWaiters;
  unsigned notified = 0;
  unsigned notifications = 0;

  void before() {
    for (unsigned i = 0; i < kWaiters; ++i) {
      if (kKind == kTimedThreads && i % 2 == 0) world.make_thread(i);
    }
  }
  void thread(unsigned index) {
    if (index < 2 * kWaiters) {
      world.run(index, [&](unsigned caller) {
        for (int i = 0; i < kRounds; ++i) wait(caller);
        --left;
      });
    } else if (index == 2 * kWaiters) {
      notify();
    } else {
      world.run_clock();
    }
  }
  void wait(unsigned caller) {
    const bool is_timed = kKind != kUntimed && (kWaiters == 1 || caller > 0);
    bool result = false;
    call_on_own_stack([&] { result = row.wait(is_timed ? kDeadline : Deadline::never()); });
    expect(result || is_timed, "a wait without a deadline ended without a notification");
    if (!result) return;
    ++notified;
    expect(kWaiters > 1 || note.get() > 0, "the note was not published by the wake");
  }
  void notify() {
    while (left > 0) {
      if (kWaiters == 1 && kRounds == 1) note.set(1);
      notifications += kKind == kAll ? row.notify_all() : (row.notify() ? 1 : 0);
      if (kWaiters == 1 && kRounds == 1 && notifications > 0) return;
      weft::model::let_others_run();
    }
  }
  void after() { expect(notified == notifications, "a notification was lost, or answered twice"); }
};

// A fiber ends and a handle joins it: the last of the two destroys their shared state. A joiner
// that has seen the end may destroy the outcome.
struct Join : rl::test_suite<Join, 6> {
  World world{2, true};
  std::optional<JoinCore> core;
  std::optional<Data<int>> outcome;
  Data<int> uses[2] = {Data<int>(0), Data<int>(0)};

  void before() {
    core.emplace();
    outcome.emplace(0);
  }
  void thread(unsigned index) {
    if (index < 4) {
      world.run(index, [&](unsigned caller) {
        if (caller == 0) {
          call_on_own_stack([&] { join(); });
        } else {
          if (perhaps()) world.await_parked(1);
          outcome->set(1);
          core->finish();
        }
        uses[caller].set(1);
        if (!core->release_reference()) return;
        expect(uses[0].get() + uses[1].get() == 2, "the last one out did not see the other's uses");
        core.reset();
      });
    } else if (index == 4) {
      world.run_clock();
    }
  }
  void join() {
    const bool is_done = perhaps() && core->done();
    while (!is_done && !core->wait_until(perhaps() ? kDeadline : Deadline::never())) {
    }
    expect(outcome->get() == 1, "the join returned before the fiber had finished");
    outcome.reset();
  }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::bounded_search;
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "park",
             {random_search<Waits<1, 1, kUntimed>>("one waiter", 40'000),
              random_search<Waits<1, 1, kTimed>>("notifier against clock", 60'000),
              random_search<Waits<2, 2, kTimed>>("two waiters, two rounds", 40'000),
              random_search<Waits<2, 2, kTimedThreads>>("a plain thread and a fiber", 40'000),
              random_search<Waits<3, 1, kAll>>("three waiters, all notified", 40'000),
              random_search<Join>("join", 40'000)},
             {weft::model::relaxed_orders(),
              broken_by(kPublishesEarly, "published before the park"),
              broken_by(kNotifierDoesNotClaim, "the notifier does not claim"),
              broken_by(kTouchesAfterWake, "a waiter touched after its wake"),
              broken_by(kLeavesWaiterLinked, "a waiter left in the list"),
              broken_by(kOmitsWake, "the wake omitted")})
      .run(count, arguments);
}
