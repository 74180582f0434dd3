// sync/mutex.cpp: the mutex has one owner at a time, and the next owner sees its writes. No waiter
// is lost. A waiter that was overtaken once gets the mutex handed over. A caller may destroy the
// mutex after all other callers have locked and unlocked it, even if their unlock() calls have not
// returned.
#include "sync/mutex.cpp"

#include <optional>

#include "tests/model/model_waist.hpp"

namespace {

using weft::Deadline;
using weft::Mutex;
using weft::model::call_on_own_stack;
using weft::model::Data;
using weft::model::expect;
using weft::model::fault;
using weft::model::perhaps;
using weft::model::World;

enum Fault { kNone, kOwnsWithoutLock, kForgetsUnlock, kUnlockLooksBack };

enum Kind { kSmall, kUntimed, kThreads, kTimed };

// Each caller locks and unlocks `kRounds` times. With kTimed, the last caller has deadlines.
template <unsigned kCallers, int kRounds, Kind kKind>
struct Locks : rl::test_suite<Locks<kCallers, kRounds, kKind>,
                              static_cast<int>(2 * kCallers + (kKind == kTimed ? 1 : 0))> {
  World world{kCallers, kKind == kTimed};
  Mutex mutex;
  Data<int> sum{0};
  // Not part of the modelled program.
  int owners = 0;
  int locked = 0;
  int given_up = 0;

  void before() {
    if (kKind != kThreads) return;
    for (unsigned i = 0; i < kCallers; i += 2) world.make_thread(i);
  }

  void thread(unsigned index) {
    if (index >= 2 * kCallers) return world.run_clock();
    world.run(index, [&](unsigned caller) {
      for (int i = 0; i < kRounds; ++i) {
        bool is_mine = false;
        call_on_own_stack([&] { is_mine = lock(caller); });
        if (is_mine) own();
        if (!is_mine) ++given_up;
      }
    });
  }

  bool lock(unsigned caller) {
    const int parks = world.me().parks;
    if (kKind == kTimed && caller + 1 == kCallers) {
      return mutex.try_lock_until(Deadline::at_nanoseconds(weft::model::kSoon));
    }
    if (fault == kOwnsWithoutLock && perhaps()) return true;
    mutex.lock();
    expect(world.me().parks - parks <= 2, "a waiter was overtaken twice");
    return true;
  }

  void own() {
    expect(++owners == 1, "two callers own the mutex");
    // Sometimes holds the mutex until others stop spinning and park.
    if (kKind != kSmall && perhaps()) world.await_parked(1 + rl::rand(kCallers - 1));
    sum.set(sum.get() + 1);
    ++locked;
    --owners;
    if (fault == kForgetsUnlock && locked == 1) return;
    call_on_own_stack([&] { mutex.unlock(); });
  }

  void after() {
    expect(sum.get() == locked, "a write under the mutex was lost");
    expect(locked + given_up == static_cast<int>(kCallers) * kRounds, "a lock got lost");
    expect(mutex.try_lock(), "the mutex is left locked");
  }
};

// Each caller locks once, after `kTries` attempts with a deadline; the last caller to finish
// destroys the mutex.
template <unsigned kCallers, int kTries>
struct Destroyed : rl::test_suite<Destroyed<kCallers, kTries>,
                                  static_cast<int>(2 * kCallers + (kTries > 0 ? 1 : 0))> {
  World world{kCallers, kTries > 0};
  std::optional<Mutex> mutex;
  Data<unsigned> left{kCallers};

  void before() { mutex.emplace(); }
  void thread(unsigned index) {
    if (index >= 2 * kCallers) return world.run_clock();
    world.run(index, [&](unsigned caller) {
      call_on_own_stack([&] { lock(caller); });
      // Holds the mutex until others wait, and sometimes until they have given up.
      if (perhaps()) world.await_parked(1 + rl::rand(kCallers - 1));
      if (kTries > 0 && perhaps()) world.await_timeouts();
      left.set(left.get() - 1);
      const bool is_last = left.get() == 0;
      call_on_own_stack([&] { mutex->unlock(); });
      if (fault == kUnlockLooksBack && mutex->try_lock()) mutex->unlock();
      if (is_last) mutex.reset();
    });
  }
  void lock(unsigned caller) {
    for (int i = 0; i < kTries && caller > 0; ++i) {
      if (mutex->try_lock_until(Deadline::at_nanoseconds(weft::model::kSoon))) return;
    }
    mutex->lock();
  }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "mutex",
             {random_search<Locks<2, 1, kSmall>>("two callers", 30'000),
              random_search<Locks<2, 2, kUntimed>>("two callers, long sections", 20'000),
              random_search<Locks<3, 2, kUntimed>>("three callers", 20'000),
              random_search<Locks<3, 2, kThreads>>("plain threads and a fiber", 20'000),
              random_search<Locks<3, 2, kTimed>>("three callers, deadlines", 20'000),
              random_search<Destroyed<2, 0>>("destroyed by the last", 20'000),
              random_search<Destroyed<2, 1>>("destroyed after a timeout", 60'000),
              random_search<Destroyed<3, 1>>("destroyed after two timeouts", 60'000)},
             {weft::model::relaxed_orders(), broken_by(kOwnsWithoutLock, "owns without locking"),
              broken_by(kForgetsUnlock, "an unlock omitted"),
              broken_by(kUnlockLooksBack, "the mutex touched after its unlock")})
      .run(count, arguments);
}
