// sync/shared_mutex.cpp: a writer is alone, and readers see what earlier writers wrote. No waiter
// is lost, even if waiters before it give up. No caller waits twice for one lock. A caller may
// destroy the mutex after all other callers have locked and unlocked it.
#include "sync/shared_mutex.cpp"

#include <optional>

#include "tests/model/model_waist.hpp"

namespace {

using weft::Deadline;
using weft::SharedMutex;
using weft::model::call_on_own_stack;
using weft::model::Data;
using weft::model::expect;
using weft::model::fault;
using weft::model::perhaps;
using weft::model::World;

enum Fault { kNone, kReadsWithoutLock, kReaderWrites, kForgetsUnlock, kUnlockLooksBack };

enum Kind { kSmall, kUntimed, kThreads, kTimed };

// Each caller locks and unlocks `kRounds` times, to write or to read. With kTimed, all callers
// except the first have deadlines. A caller that gives up then tries without a deadline, so that it
// completes each round. The last caller to complete its rounds destroys the mutex.
template <unsigned kCallers, int kRounds, Kind kKind>
struct Shares : rl::test_suite<Shares<kCallers, kRounds, kKind>,
                               static_cast<int>(2 * kCallers + (kKind == kTimed ? 1 : 0))> {
  World world{kCallers, kKind == kTimed};
  std::optional<SharedMutex> mutex;
  Data<int> sum{0};
  // Not part of the modelled program.
  int writers = 0;
  int readers = 0;
  int written = 0;
  int left = static_cast<int>(kCallers) * kRounds;

  void before() {
    mutex.emplace();
    if (kKind != kThreads) return;
    for (unsigned i = 0; i < kCallers; i += 2) world.make_thread(i);
  }

  void thread(unsigned index) {
    if (index >= 2 * kCallers) return world.run_clock();
    world.run(index, [&](unsigned caller) {
      for (int i = 0; i < kRounds; ++i) {
        if (perhaps()) {
          call_on_own_stack([&] { lock_to_write(caller); });
          write();
        } else {
          call_on_own_stack([&] { lock_to_read(caller); });
          read();
        }
      }
    });
  }

  [[nodiscard]] bool has_deadline(unsigned caller) const { return kKind == kTimed && caller > 0; }
  static Deadline soon() { return Deadline::at_nanoseconds(weft::model::kSoon); }

  void lock_to_write(unsigned caller) {
    if (has_deadline(caller) && mutex->try_lock_until(soon())) return;
    const int parks = world.me().parks;
    mutex->lock();
    expect(world.me().parks - parks <= 1, "a writer was overtaken");
  }
  void lock_to_read(unsigned caller) {
    if (fault == kReadsWithoutLock && perhaps()) return;
    if (has_deadline(caller) && mutex->try_lock_shared_until(soon())) return;
    const int parks = world.me().parks;
    mutex->lock_shared();
    expect(world.me().parks - parks <= 1, "a reader was overtaken");
  }

  void stay() {
    // Sometimes holds the mutex until others park or give up.
    if (kKind != kSmall && perhaps()) world.await_parked(1 + rl::rand(kCallers - 1));
    if (kKind == kTimed && perhaps()) world.await_timeouts();
  }
  void write() {
    expect(++writers == 1 && readers == 0, "a writer is not alone");
    stay();
    sum.set(sum.get() + 1);
    ++written;
    --writers;
    const bool is_last = --left == 0;
    if (fault == kForgetsUnlock && written == 1 && !is_last) return;
    call_on_own_stack([&] { mutex->unlock(); });
    look_back();
    if (is_last) mutex.reset();
  }
  void read() {
    ++readers;
    expect(writers == 0, "a reader is inside with a writer");
    stay();
    expect(sum.get() == written, "a reader does not see what was written");
    if (fault == kReaderWrites) sum.set(sum.get());
    --readers;
    const bool is_last = --left == 0;
    call_on_own_stack([&] { mutex->unlock_shared(); });
    look_back();
    if (!is_last) return;
    // Other readers may not have begun their unlock yet, so this caller locks as a writer after
    // them.
    call_on_own_stack([&] { mutex->lock(); });
    expect(sum.get() == written, "a write under the mutex was lost");
    call_on_own_stack([&] { mutex->unlock(); });
    mutex.reset();
  }
  void look_back() {
    if (fault == kUnlockLooksBack && mutex->try_lock_shared()) mutex->unlock_shared();
  }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "shared_mutex",
             {random_search<Shares<2, 1, kSmall>>("two callers", 30'000),
              random_search<Shares<2, 2, kUntimed>>("two callers, long sections", 20'000),
              random_search<Shares<3, 2, kUntimed>>("three callers", 30'000),
              random_search<Shares<3, 2, kThreads>>("plain threads and a fiber", 20'000),
              random_search<Shares<2, 1, kTimed>>("one round, deadlines", 120'000),
              random_search<Shares<2, 2, kTimed>>("two callers, deadlines", 30'000),
              random_search<Shares<3, 1, kTimed>>("three callers, deadlines", 50'000),
              random_search<Shares<4, 1, kTimed>>("four callers, deadlines", 30'000)},
             {weft::model::relaxed_orders(), broken_by(kReadsWithoutLock, "reads without locking"),
              broken_by(kReaderWrites, "a reader that writes"),
              broken_by(kForgetsUnlock, "an unlock omitted"),
              broken_by(kUnlockLooksBack, "the mutex touched after its unlock")})
      .run(count, arguments);
}
