// base/parker.cpp: no token is lost, no thread sleeps forever, and writes before an unpark are
// visible after the park that it ends.
#include "tests/model/model_futex.hpp"

#define syscall weft::model::futex_syscall
#include "base/parker.cpp"
#undef syscall

namespace {

using weft::Deadline;
using weft::base::Parker;
using weft::detail::relaxed;
using weft::model::Atomic;
using weft::model::Data;
using weft::model::Elsewhere;
using weft::model::expect;
using weft::model::perhaps;

enum Fault { kNone, kUnparkOnlySleepers, kSleepsUnannounced, kForgetsToInterrupt };

struct Sleeper {
  Parker parker;
  Elsewhere elsewhere;

  // Does the same as Desk::unpark.
  void unpark() {
    if (parker.unpark() && weft::model::fault != kForgetsToInterrupt) elsewhere.interrupt();
  }
  // Does the same as Worker::block_until. Returns true when unparked.
  bool sleep(Deadline deadline) {
    if (perhaps()) return parker.park_until(deadline);
    if (weft::model::fault == kSleepsUnannounced) {
      elsewhere.wait(false);
      return parker.end_elsewhere();
    }
    if (!parker.begin_elsewhere()) return true;
    elsewhere.wait(!deadline.is_never());
    return parker.end_elsewhere();
  }
};

// `kUnparkers` threads unpark the owner, which sleeps until it has seen all of them.
template <int kUnparkers, bool kTimed>
struct Tokens : rl::test_suite<Tokens<kUnparkers, kTimed>, kUnparkers + 1> {
  Sleeper sleeper;
  Data<int> data[3] = {Data<int>(0), Data<int>(0), Data<int>(0)};
  // Relaxed: the token orders them.
  Atomic<std::uint32_t> told[3];

  void before() { weft::model::reset_time(kTimed); }

  void thread(unsigned index) {
    if (index < kUnparkers) return unpark_once(index);
    int tokens = 0;
    for (int known = 0; known < kUnparkers;) {
      // The poller may return for another reason; only `true` means a token.
      const auto soon = Deadline::at_nanoseconds(weft::model::kSoon);
      if (!sleeper.sleep(kTimed ? soon : Deadline::never())) continue;
      ++tokens;
      known = 0;
      for (const auto& flag : told) known += static_cast<int>(flag.load(relaxed));
      // Each token comes from at least one unpark that caused no other token.
      expect(known >= tokens, "a token came without what was written before it");
    }
    // With several unparkers, the owner may see a flag before the unpark.
    if (kUnparkers == 1) expect(data[0].get() == 1, "the token did not publish the data");
  }

  void unpark_once(unsigned index) {
    data[index].set(1);
    told[index].store(1, relaxed);
    if (weft::model::fault == kUnparkOnlySleepers && perhaps()) return;
    sleeper.unpark();
  }
};

// An unpark before the park is kept, also across a sleep elsewhere that did not take it.
struct Kept : rl::test_suite<Kept, 2> {
  Sleeper sleeper;
  int slept = 0;

  void before() { weft::model::reset_time(false); }
  void thread(unsigned index) {
    if (index == 0) {
      sleeper.unpark();
      sleeper.unpark();
    } else {
      // Two unparks are one or two tokens, never none.
      while (!sleeper.sleep(Deadline::never())) {
      }
      ++slept;
    }
  }
  void after() { expect(slept == 1, "the sleeper did not come back"); }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::bounded_search;
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "parker",
             {bounded_search<Tokens<1, false>>("one unparker", 4),
              bounded_search<Kept>("two unparks, one sleeper", 4),
              random_search<Tokens<1, true>>("one unparker, deadlines", 30'000),
              random_search<Tokens<2, false>>("two unparkers", 60'000),
              random_search<Tokens<3, true>>("three unparkers, deadlines", 40'000)},
             {weft::model::relaxed_orders(), broken_by(kUnparkOnlySleepers, "an unpark dropped"),
              broken_by(kSleepsUnannounced, "sleeps elsewhere unannounced"),
              broken_by(kForgetsToInterrupt, "does not interrupt who sleeps elsewhere")})
      .run(count, arguments);
}
