// sync/condition_variable.cpp: no notify is lost, whether it comes before or after its waiter has
// parked. A notified waiter sees earlier writes. The last caller may destroy the variable at once.
#include "sync/condition_variable.cpp"

#include <optional>

#include "sync/mutex.cpp"
#include "tests/model/model_waist.hpp"

namespace {

using weft::ConditionVariable;
using weft::Deadline;
using weft::Mutex;
using weft::model::call_on_own_stack;
using weft::model::Data;
using weft::model::expect;
using weft::model::fault;
using weft::model::perhaps;
using weft::model::World;

enum Fault { kNone, kUnlocksBefore, kForgetsOne, kDestroysEarly };

enum Kind { kAll, kOne, kThreads, kTimed };

// Imitates a user's lock, whose unlock() takes a time that explorations vary.
struct SlowLock {
  Mutex mutex;
  bool is_unlocked_before = false;

  void lock() { mutex.lock(); }
  void unlock() {
    if (!is_unlocked_before) mutex.unlock();
    is_unlocked_before = false;
    while (perhaps()) weft::model::let_others_run();
  }
};

// The last caller provides one token for each other caller; each other caller waits for a token.
// With kTimed, the first waiter sometimes gives up. The last caller to leave destroys the variable.
template <unsigned kWaiters, Kind kKind>
struct Tokens : rl::test_suite<Tokens<kWaiters, kKind>,
                               static_cast<int>(2 * kWaiters + 2 + (kKind == kTimed ? 1 : 0))> {
  World world{kWaiters + 1, kKind == kTimed};
  SlowLock lock;
  std::optional<ConditionVariable> condition;
  Data<unsigned> tokens{0};
  Data<unsigned> left{kWaiters + 1};

  void before() {
    condition.emplace();
    if (kKind != kThreads) return;
    for (unsigned i = 0; i < kWaiters; i += 2) world.make_thread(i);
  }

  void thread(unsigned index) {
    if (index >= 2 * kWaiters + 2) return world.run_clock();
    world.run(index, [&](unsigned caller) {
      call_on_own_stack([&] { caller == kWaiters ? put() : take(caller == 0); });
    });
  }

  void take(bool is_first) {
    lock.lock();
    while (tokens.get() == 0) {
      if (fault == kUnlocksBefore && perhaps()) {
        lock.mutex.unlock();
        lock.is_unlocked_before = true;
      }
      if (kKind == kTimed && is_first) {
        const Deadline deadline = Deadline::at_nanoseconds(weft::model::kSoon);
        if (condition->wait_until(lock, deadline) == std::cv_status::timeout) break;
      } else {
        condition->wait(lock);
      }
    }
    if (tokens.get() > 0) tokens.set(tokens.get() - 1);
    leave();
  }

  void put() {
    if (perhaps()) world.await_parked(1 + rl::rand(kWaiters));
    for (unsigned i = 0; i < kWaiters; ++i) {
      lock.lock();
      tokens.set(tokens.get() + (kKind == kAll ? kWaiters : 1));
      if (kKind == kAll) {
        condition->notify_all();
        return leave();
      }
      if (fault != kForgetsOne || i > 0) condition->notify_one();
      if (i + 1 == kWaiters) return leave();
      lock.mutex.unlock();
    }
  }

  // The caller holds the lock.
  void leave() {
    left.set(left.get() - 1);
    const bool is_last = left.get() == 0;
    if (is_last || fault == kDestroysEarly) condition.reset();
    lock.mutex.unlock();
  }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "condition_variable",
             {random_search<Tokens<1, kOne>>("one waiter", 60'000),
              random_search<Tokens<2, kOne>>("two waiters", 30'000),
              random_search<Tokens<2, kAll>>("two waiters, notify_all", 30'000),
              random_search<Tokens<2, kThreads>>("a plain thread and a fiber", 30'000),
              random_search<Tokens<1, kTimed>>("a deadline", 60'000),
              random_search<Tokens<2, kTimed>>("a deadline and a patient waiter", 60'000)},
             {weft::model::relaxed_orders(),
              broken_by(kUnlocksBefore, "the lock given up before the waiter is listed"),
              broken_by(kForgetsOne, "a notify omitted"),
              broken_by(kDestroysEarly, "destroyed too early")})
      .run(count, arguments);
}
