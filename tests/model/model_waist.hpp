// Replaces the waist in models of the layers above it: callers that park and wake, and a clock.
#pragma once

#include <weft/detail/turn.hpp>
#include <weft/detail/waist.hpp>

#include "tests/model/model_futex.hpp"
#include "tests/model/model_stacks.hpp"

#define syscall weft::model::futex_syscall
#include "base/parker.cpp"
#undef syscall
#include "base/spin_lock.cpp"
#include "scheduler/timers/timers.cpp"

namespace weft::base {
void yield_processor() noexcept { model::let_others_run(); }
void sleep_thread(long) noexcept { model::let_others_run(); }
bool is_forked_fiber() noexcept { return false; }
int last_error() noexcept { return errno; }

[[noreturn]] void panic(const char* sentence, const char* file, int line) noexcept {
  rl::ctx().fail_test(sentence, rl::test_result_user_assert_failed,
                      {"", file, static_cast<unsigned>(line)});
  std::abort();
}
}  // namespace weft::base

namespace weft::detail {
struct ThreadSeat {};
}  // namespace weft::detail

namespace weft::model {

// A caller that may park: a fiber or a plain thread. A thread of the model runs its code. The After
// of a fiber runs on another thread of the model, its other side. So the fiber may continue, as on
// another worker, before the After has finished. For a Waker, each caller is a thread's seat: no
// layer above the waist distinguishes the kinds.
struct Caller : detail::ThreadSeat {
  enum class Kind { fiber, thread };

  Kind kind = Kind::fiber;
  Data<int> registers{0};  // A park saves them; a wake must come later.
  Atomic<std::uint32_t> other_side{0};
  Atomic<std::uint32_t> woken{0};
  detail::After after{};
  base::Parker parker;  // Only plain threads use it.
  // Bookkeeping that is not part of the modelled program.
  bool is_parked = false;
  bool is_woken = false;
  int parks = 0;
};

// The callers of one interleaving. The first `count` threads of a test are the callers, the next
// `count` are their other sides, one more may be the clock; the test defines the others.
class World {
 public:
  static constexpr unsigned kMost = 5;

  // `time_runs`: deadlines may pass. Then one thread must be run_clock().
  World(unsigned count, bool time_runs) : timers(kEarly), count_(count) {
    current_ = this;
    OwnStacks::get().reset();
    reset_time(time_runs);
  }
  [[nodiscard]] static World& current() { return *current_; }

  // Makes the caller a plain thread instead of a fiber. Call it in before().
  void make_thread(unsigned index) { callers[index].kind = Caller::Kind::thread; }

  // Runs a thread of the test. Each caller calls `body` with its index.
  template <class Body>
  void run(unsigned index, Body&& body) {
    if (index < count_) {
      body(index);
      ++finished_;
      signal(callers[index].other_side, kLeave);
    } else if (index < 2 * count_) {
      run_other_side(callers[index - count_]);
    }
  }
  // Does the same as Clockwork::run, repeatedly, while any caller may wait.
  void run_clock() {
    // Continues when the time is late: a timer that is added too late expires at the next tick.
    std::int64_t time = kLate;
    while (finished_ < count_) {
      let_others_run();
      if (!time_passes || !perhaps()) continue;
      is_late = true;
      time += std::int64_t{1} << scheduler::Timers::kTickShift;
      for (scheduler::Timer* timer = timers.expire(time); timer != nullptr;) {
        scheduler::Timer* next = timer->next;
        detail::wake(timer->waker);
        timer = next;
      }
    }
  }

  [[nodiscard]] Caller& me() {
    const unsigned index = rl::thread_index();
    expect(index < 2 * count_, "one that is no caller has parked");
    return callers[index % count_];
  }
  // Returns how many callers are parked and not woken.
  [[nodiscard]] unsigned parked() const {
    unsigned sum = 0;
    for (const Caller& caller : callers) sum += caller.is_parked && !caller.is_woken ? 1 : 0;
    return sum;
  }
  // Lets other threads run until `count` callers are parked, or for some steps. This steers
  // explorations to waits, which would otherwise be rare.
  void await_parked(unsigned count) const {
    for (int i = 0; i < 60 && parked() < count; ++i) let_others_run();
  }
  // Lets other threads run until the clock has woken every parked caller, and for some further
  // steps.
  void await_timeouts() const {
    for (int i = 0; i < 60 && (!is_late || parked() > 0); ++i) let_others_run();
    for (unsigned i = rl::rand(24); i > 0; --i) let_others_run();
  }

  void park(detail::After after) {
    Caller& self = me();
    ++self.parks;
    self.is_parked = true;
    if (self.kind == Caller::Kind::thread) {
      after.call(after.argument);
      (void)self.parker.park_until(Deadline::never());
    } else {
      self.registers.set(self.parks);
      self.after = after;
      signal(self.other_side, kAfter);
      wait_for(self.woken);
    }
    expect(self.is_woken, "a park returned without a wake");
    self.is_parked = self.is_woken = false;
  }

  void wake(Caller& caller) {
    expect(caller.is_parked, "a wake came before its park");
    expect(!caller.is_woken, "a park was woken twice");
    caller.is_woken = true;
    if (caller.kind == Caller::Kind::thread) {
      (void)caller.parker.unpark();
    } else {
      (void)caller.registers.get();
      signal(caller.woken, 1);
    }
  }

  Caller callers[kMost];
  scheduler::Timers timers;

 private:
  enum Signal : std::uint32_t { kNothing, kAfter, kLeave };

  // Writes before a signal are visible after wait_for(), as through a run queue.
  static void signal(Atomic<std::uint32_t>& word, std::uint32_t value) {
    word.store(value, detail::release);
    wake_in_kernel(word, 1);
  }
  static std::uint32_t wait_for(Atomic<std::uint32_t>& word) {
    // Exchanges see the newest value, so no search reads old values forever.
    std::uint32_t value = word.exchange(kNothing, detail::acquire);
    for (; value == kNothing; value = word.exchange(kNothing, detail::acquire)) {
      wait_in_kernel(word, kNothing, WaitEnd::by_wake);
    }
    return value;
  }
  static void run_other_side(Caller& caller) {
    while (wait_for(caller.other_side) == kAfter) {
      const detail::After after = caller.after;
      after.call(after.argument);
    }
  }

  inline static World* current_ = nullptr;
  unsigned count_;
  unsigned finished_ = 0;
};

}  // namespace weft::model

namespace weft::detail {

// Repeats scheduler/waist.cpp.
struct TimedPark {
  After after;
  Deadline deadline;
  scheduler::Timer timer;

  static void start(void* timed_park) noexcept {
    auto* self = static_cast<TimedPark*>(timed_park);
    const After after = self->after;
    model::World::current().timers.add(self->timer, self->deadline);
    after.call(after.argument);
  }
};

// Repeats scheduler/waist.cpp.
inline Claim::Winner park_thread_until(After after, Deadline deadline, Claim& claim) noexcept {
  model::Caller& self = model::World::current().me();
  ++self.parks;
  self.is_parked = true;
  after.call(after.argument);
  if (!self.parker.park_until(deadline)) {
    if (claim.try_claim(Claim::kClock)) {
      self.is_parked = false;
      return Claim::kClock;
    }
    (void)self.parker.park_until(Deadline::never());
  }
  model::expect(self.is_woken, "a park returned without a wake");
  self.is_parked = self.is_woken = false;
  return claim.winner();
}

Waker current() noexcept { return Waker::of_thread(&model::World::current().me()); }

// No turn ends.
void give_way() noexcept {}

// A caller of a model is never spawned, so it has no parent.
bool run_in_place(const void*, WaitReason) noexcept { return false; }

void park(After after, WaitReason) noexcept { model::World::current().park(after); }

// Repeats scheduler/waist.cpp.
Claim::Winner park_until(After after, WaitReason reason, Deadline deadline, Claim& claim) noexcept {
  model::World& world = model::World::current();
  if (world.me().kind == model::Caller::Kind::thread) {
    return park_thread_until(after, deadline, claim);
  }
  if (deadline.is_never()) {
    park(after, reason);
    return claim.winner();
  }
  TimedPark timed{after, deadline, {}};
  timed.timer.waker = current();
  timed.timer.claim = &claim;
  park({&TimedPark::start, &timed}, reason);
  const Claim::Winner winner = claim.winner();
  if (winner != Claim::kClock) timed.timer.home->cancel(timed.timer);
  return winner;
}

void wake(Waker waker) noexcept {
  model::World::current().wake(*static_cast<model::Caller*>(waker.thread()));
}

}  // namespace weft::detail
