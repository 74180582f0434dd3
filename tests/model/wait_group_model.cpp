// sync/wait_group.cpp: a wait ends exactly when all work is done, and the results are visible then.
// The group may be destroyed as soon as its last wait has returned true.
#include "sync/wait_group.cpp"

#include <optional>

#include "tests/model/model_waist.hpp"

namespace {

using weft::Deadline;
using weft::WaitGroup;
using weft::model::call_on_own_stack;
using weft::model::Data;
using weft::model::expect;
using weft::model::fault;
using weft::model::perhaps;
using weft::model::World;

enum Fault { kNone, kWakesTwice, kDestroysEarly, kForgetsToWait };

enum Kind { kSmall, kPlain, kThreads, kTimed, kGivenUp };

// `kWaiters` callers wait, and `kDoers` threads each finish one item. The last waiter to return
// destroys the group at once. kGivenUp: the doers finish when timed waits have just been given up.
template <unsigned kWaiters, unsigned kDoers, Kind kKind>
struct Waits : rl::test_suite<Waits<kWaiters, kDoers, kKind>,
                              static_cast<int>(2 * kWaiters + kDoers + (kKind >= kTimed ? 1 : 0))> {
  static constexpr bool kIsTimed = kKind >= kTimed;
  World world{kWaiters, kIsTimed};
  std::optional<WaitGroup> group;
  Data<int> results[3] = {Data<int>(0), Data<int>(0), Data<int>(0)};
  unsigned waiting = kWaiters;  // Not part of the modelled program.

  void before() {
    group.emplace();
    group->add(kDoers);
    if (kKind == kThreads) {
      for (unsigned i = 0; i < kWaiters; ++i) world.make_thread(i);
    }
  }

  void thread(unsigned index) {
    if (index < 2 * kWaiters) {
      world.run(index, [&](unsigned) { wait(); });
    } else if (index < 2 * kWaiters + kDoers) {
      const unsigned doer = index - 2 * kWaiters;
      if (kKind != kSmall && perhaps()) world.await_parked(kWaiters);
      if (kKind == kGivenUp) world.await_timeouts();
      results[doer].set(1);
      group->done();
    } else {
      world.run_clock();
    }
  }

  void wait() {
    if (fault != kForgetsToWait) call_on_own_stack([&] { wait_in_some_way(); });
    for (unsigned i = 0; i < kDoers; ++i) {
      expect(results[i].get() == 1, "a wait returned before all was done");
    }
    if (--waiting == 0 || fault == kDestroysEarly) group.reset();
  }

  void wait_in_some_way() {
    if (kIsTimed) {
      // The first wait may be given up; the second wait has no deadline.
      for (int i = 0; i < (kKind == kGivenUp ? 1 : 2); ++i) {
        if (group->wait_until(Deadline::at_nanoseconds(weft::model::kSoon))) return;
      }
    }
    group->wait();
  }
};

// A group is reused as soon as wait() has returned.
struct Again : rl::test_suite<Again, 4> {
  World world{1, false};
  WaitGroup group;
  Data<int> result{0};
  weft::model::Atomic<std::uint32_t> round{0};

  void before() { group.add(1); }
  void thread(unsigned index) {
    if (index < 2) {
      world.run(index, [&](unsigned) {
        call_on_own_stack([&] { group.wait(); });
        group.add(1);
        round.store(1, weft::detail::release);
        weft::model::wake_in_kernel(round, 1);
        call_on_own_stack([&] { group.wait(); });
        expect(result.get() == 1, "the second wait returned before all was done");
      });
    } else if (index == 2) {
      group.done();
    } else {
      while (round.exchange(0, weft::detail::acquire) == 0) {
        weft::model::wait_in_kernel(round, 0, weft::model::WaitEnd::by_wake);
      }
      result.set(1);
      group.done();
    }
  }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::bounded_search;
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "wait_group",
             {bounded_search<Waits<1, 1, kSmall>>("one waiter", 3),
              bounded_search<Again>("used again", 2),
              random_search<Waits<1, 2, kPlain>>("one waiter, two doers", 40'000),
              random_search<Waits<2, 2, kPlain>>("two waiters, two doers", 40'000),
              random_search<Waits<2, 2, kThreads>>("two plain threads wait", 40'000),
              random_search<Waits<1, 1, kTimed>>("deadlines", 40'000),
              random_search<Waits<2, 1, kTimed>>("two waiters with deadlines", 40'000),
              random_search<Waits<2, 1, kGivenUp>>("two waiters give up", 100'000)},
             {weft::model::relaxed_orders(), broken_by(kDestroysEarly, "destroyed too early"),
              broken_by(kForgetsToWait, "the wait is left out")})
      .run(count, arguments);
}
