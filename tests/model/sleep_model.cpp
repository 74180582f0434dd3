// scheduler/sleep/sleep_protocol.hpp, with idle_set and watch. Work from outside does not wait
// while all workers sleep, and a burst of such work wakes one searcher. An idle worker sees events
// of the kernel and the clock, whether other workers compute or sleep.
//
// The workers here have no stacks, fibers or descriptors; all steps of the protocol are the
// library's own code.
#include "scheduler/sleep/sleep_protocol.hpp"

#include <utility>

#include "scheduler/sleep/idle_set.cpp"
#include "tests/model/model_futex.hpp"
#include "tests/model/sleep_setups.hpp"

#define syscall weft::model::futex_syscall
#include "base/parker.cpp"
#undef syscall

namespace {

using namespace weft::model::sleep;
using weft::Deadline;
using weft::base::Parker;
using weft::detail::acquire;
using weft::detail::full_fence;
using weft::detail::relaxed;
using weft::detail::release;
using weft::detail::seq_cst;
using weft::model::Aligned;
using weft::model::Atomic;
using weft::model::Elsewhere;
using weft::model::expect;
using weft::model::fault;
using weft::model::kSoon;
using weft::model::perhaps;
using weft::scheduler::IdleSet;
using weft::scheduler::Watch;

// Counts fibers made runnable from outside, of which only the number matters. This is the weakest
// queue that the protocol permits: a look may be stale, and a push orders nothing else.
class Injected {
 public:
  void push() { count_.fetch_add(1, release); }
  [[nodiscard]] bool pop() {
    std::uint32_t count = count_.load(relaxed);
    while (count != 0) {
      if (count_.compare_exchange_weak(count, count - 1, acquire, relaxed)) return true;
    }
    return false;
  }
  [[nodiscard]] bool empty_hint() const { return count_.load(relaxed) == 0; }

 private:
  Atomic<std::uint32_t> count_{0};
};

struct Worker;

// Holds the state that workers share: the part of Shared that concerns sleeping.
class Shared {
 public:
  Shared(Worker* first, unsigned count, unsigned fibers)
      : fibers_left(fibers), idle_(count), workers_(first), worker_count_(count) {}

  [[nodiscard]] IdleSet& idle() { return *idle_; }
  [[nodiscard]] Watch& watch() { return *watch_; }
  [[nodiscard]] Worker& desk(unsigned index);
  [[nodiscard]] bool stopping() const { return stopping_.load(acquire); }
  [[nodiscard]] bool has_outside_work_hint() const { return !injected.empty_hint(); }
  [[nodiscard]] bool watches_events() const {
    return fault != kSourceIgnored && watches.load(relaxed) != 0;
  }
  [[nodiscard]] bool has_events_to_watch() const {
    return watches.load(relaxed) != 0 || timer.load(relaxed) != 0;
  }

  // Imitates Shared::make_ready_from_outside.
  void make_ready_from_outside() {
    injected.push();
    if (fault == kAdderWithoutFence) return weft::scheduler::wake_one(*this);
    weft::scheduler::announce_from_outside(*this);
  }
  // A plain thread calls it, as Poller::enter does.
  void watch_descriptor() {
    watches.fetch_add(1, relaxed);
    if (fault != kDescriptorUntold) weft::scheduler::announce_event(*this);
  }
  // Call it before any work is added, as Scheduler::call_workers does.
  void let_leave(unsigned worker);
  void bring_event() {
    event.store(1, release);  // The kernel does this.
    poller.interrupt();
  }
  // The worker that runs the last fiber calls this function, which imitates Shared::stop.
  void stop();

  Injected injected;
  // A descriptor: whether it is watched, and whether an event waits to be fetched.
  Atomic<std::uint32_t> watches{0};
  Atomic<std::uint32_t> event{0};
  Elsewhere poller;
  // A timer: the number of the worker that has set it, counted from 1, or 0.
  Atomic<std::uint32_t> timer{0};
  // Bookkeeping that is not part of the modelled program.
  unsigned fibers_left;
  Kind kind = kUntimed;
  Worker* event_fetched_by = nullptr;
  Atomic<std::uint32_t> last_runs{0};
  int woken_searchers = 0;  // Workers that were woken and still search.

 private:
  Aligned<IdleSet> idle_;
  Aligned<Watch> watch_;
  Atomic<bool> stopping_{false};
  Worker* workers_;
  unsigned worker_count_;
};

struct Worker {
  // Imitates Loop::run.
  void run() {
    while (find_work()) {
      leave_search();
      if (fault != kNeverEndsSearch) end_search();
      const bool is_event = std::exchange(runs_event_, false);
      const unsigned left = --shared_->fibers_left;
      if (left == 0) shared_->stop();
      const Kind kind = shared_->kind;
      if (kind >= kFibersMeet && kind <= kClock) meet(left == 0, is_event);
      if (!is_event) prepare_event(kind);
    }
  }
  // Call it from a fiber; its worker may sleep afterwards.
  void prepare_event(Kind kind) {
    Shared& shared = *shared_;
    if (kind == kClockOfSleeper || kind == kClockOfLeaver || kind == kPinned)
      shared.timer.store(index_ + 1, relaxed);
    if (kind == kClockOfLeaver && index_ != 0) must_leave_.store(1, relaxed);
    if (kind == kTimerReplaced && shared.timer.exchange(0, relaxed) != 0) {
      shared.timer.store(index_ + 1, relaxed);
    }
    if (kind == kDescriptorReplaced) {
      shared.watches.fetch_sub(1, relaxed);
      shared.watches.fetch_add(1, relaxed);
    }
  }
  void end_search() {
    if (fault != kSearcherLooksAway) return weft::scheduler::end_search(*this);
    if (std::exchange(searching_, false)) (void)shared_->idle().end_search();
  }
  // A fiber keeps its worker until the last fiber also runs, on another worker. The worker, or the
  // monitor on its behalf, checks the watch from time to time. Without a fence, one look may miss
  // an event, which the next look sees. So the model makes one look with a fence.
  void meet(bool last, bool is_event) {
    Shared& shared = *shared_;
    if (last) shared.last_runs.store(1, relaxed);
    if (last) weft::model::wake_in_kernel(shared.last_runs, 16);
    const bool acts = !is_event && shared.kind != kFibersMeet;
    if (acts && shared.kind == kClock) shared.timer.store(index_ + 1, relaxed);
    if (acts && shared.kind == kKernel) shared.watches.fetch_add(1, relaxed);
    if (fault != kWatchNotMinded) {
      full_fence();
      weft::scheduler::mind_watch(shared, next_timer_hint().nanoseconds());
    }
    if (acts && shared.kind != kClock) shared.bring_event();
    while (shared.last_runs.newest() == 0) {
      weft::model::wait_in_kernel(shared.last_runs, 0, weft::model::WaitEnd::by_wake);
    }
  }
  // Imitates Loop::find_work, which also examines the worker's queue from which other workers may
  // steal.
  [[nodiscard]] bool find_work() {
    for (;;) {
      if (must_leave_.load(relaxed) != 0) {
        leave();
        return false;
      }
      if (run_event() || take_pinned()) return true;
      if (shared_->injected.pop()) return true;
      if (weft::scheduler::search(*this)) return true;
      if (!weft::scheduler::sleep(*this)) return false;
    }
  }

  // Imitates Loop::rest, but no event calls the worker back.
  void leave() {
    if (shared_->event_fetched_by == this) {
      shared_->event_fetched_by = nullptr;
      shared_->injected.push();
    }
    leave_search();
    if (fault == kLeavesInSilence) return weft::scheduler::end_search(*this);
    weft::scheduler::leave(*this);
  }

  // --- The functions that sleep_protocol.hpp requires ---

  [[nodiscard]] Shared& shared() { return *shared_; }
  [[nodiscard]] unsigned index() const { return index_; }
  [[nodiscard]] bool& searching() { return searching_; }
  [[nodiscard]] bool search_for_a_while() { return run_event() || shared_->injected.pop(); }
  // Returns a result that explorations vary.
  [[nodiscard]] bool is_search_worthwhile() const { return perhaps(); }
  void begin_idling() { leave_search(); }
  void note_sleep() { has_dozed_ = false; }
  [[nodiscard]] Deadline sleep_limit() const { return Deadline::never(); }
  [[nodiscard]] Deadline next_timer_hint() const {
    const bool has_set = shared_->timer.load(relaxed) == index_ + 1;
    const bool tells = (fault != kTimerUntoldBySleeper || shared_->kind != kClockOfSleeper) &&
                       (fault != kTimerUntoldByLeaver || shared_->kind != kClockOfLeaver);
    return has_set && tells ? Deadline::at_nanoseconds(kSoon) : Deadline::never();
  }
  [[nodiscard]] Deadline earliest_event(Deadline limit) const {
    return shared_->timer.load(relaxed) != 0 ? Deadline::at_nanoseconds(kSoon) : limit;
  }
  [[nodiscard]] bool has_own_work() const {
    if (fault == kPinnedOverlooked && !has_dozed_) return false;
    return shared_->event_fetched_by == this || must_leave_.load(relaxed) != 0 ||
           pinned_.load(relaxed) != 0;
  }
  [[nodiscard]] bool has_due_events() const {
    return shared_->timer.load(relaxed) != 0 && Deadline::at_nanoseconds(kSoon).passed();
  }
  [[nodiscard]] bool run_events_of_all() {
    if (!has_due_events()) return false;
    const std::uint32_t set_by = shared_->timer.exchange(0, acquire);
    if (set_by == 0) return false;
    if (shared_->kind == kPinned) {
      send_home(shared_->desk(set_by - 1));
    } else {
      shared_->event_fetched_by = this;
    }
    return true;
  }
  // Imitates Desks::send_home.
  void send_home(Worker& home) {
    home.pinned_.store(1, release);
    if (&home != this) home.unpark();
  }
  [[nodiscard]] bool do_chores() { return false; }
  [[nodiscard]] bool park_until(Deadline limit) {
    has_dozed_ = true;
    return parker_.park_until(limit);
  }
  // Imitates Loop::wait_for_events.
  [[nodiscard]] bool wait_for_events(Deadline limit, bool in_source) {
    if (fault == kToldIsForgotten) {
      limit = earliest_event(Deadline::never());
      in_source = shared_->watches_events();
    }
    if (!in_source) return park_until(limit);
    has_dozed_ = true;
    if (!parker_.begin_elsewhere()) return true;
    shared_->poller.wait(!limit.is_never());
    const bool fetched = fetch_event();
    return parker_.end_elsewhere() || fetched;
  }
  void unpark() {
    if (parker_.unpark()) shared_->poller.interrupt();
  }
  void unpark_for_work() {
    expect(++shared_->woken_searchers == 1, "a second searcher was woken while one searched");
    woken_for_work_ = true;
    unpark();
  }

  // --- Events ---

  bool fetch_event() {
    if (shared_->event.exchange(0, acquire) == 0) return false;
    shared_->event_fetched_by = this;
    return true;
  }
  // Runs the fiber that waited for the event, if this worker has fetched the event or can fetch it.
  [[nodiscard]] bool run_event() {
    if (shared_->watches.load(relaxed) != 0) (void)fetch_event();
    (void)run_events_of_all();
    if (shared_->event_fetched_by != this) return false;
    shared_->event_fetched_by = nullptr;
    return runs_event_ = true;
  }
  // Takes the fiber that is pinned here, if it is ready. A search does not look there.
  [[nodiscard]] bool take_pinned() {
    return pinned_.exchange(0, acquire) != 0 && (runs_event_ = true);
  }
  // Bookkeeping: after IdleSet::end_search(), another searcher may be woken.
  void leave_search() {
    if (std::exchange(woken_for_work_, false)) --shared_->woken_searchers;
  }

  Shared* shared_ = nullptr;
  unsigned index_ = 0;
  bool searching_ = false;
  Atomic<std::uint32_t> must_leave_{0};
  Atomic<std::uint32_t> pinned_{0};  // Whether a fiber that may only run here is ready.
  Parker parker_;
  // Bookkeeping that is not part of the modelled program.
  bool has_dozed_ = false;  // Since step S3.
  bool woken_for_work_ = false;
  bool runs_event_ = false;
};

Worker& Shared::desk(unsigned index) { return workers_[index]; }

void Shared::let_leave(unsigned worker) {
  workers_[worker].must_leave_.store(1, relaxed);
  workers_[worker].unpark();
}

void Shared::stop() {
  stopping_.store(true, seq_cst);
  full_fence();
  for (unsigned i = 0; i < worker_count_; ++i) workers_[i].unpark();
}

// Each adder adds kFibers fibers from outside; the workers run them all and stop. After a lost
// wakeup, all workers sleep, which the checker reports as a deadlock.
template <int kWorkers, int kAdders, int kFibers, Kind kKind = kUntimed>
struct Outside : rl::test_suite<Outside<kWorkers, kAdders, kFibers, kKind>, kWorkers + kAdders> {
  static constexpr unsigned kEvents = kKind > kFibersMeet ? 1 : 0;
  Worker workers[kWorkers];
  Shared shared{workers, kWorkers, kAdders* kFibers + kEvents};

  void before() {
    weft::model::reset_time(kKind == kClock || kKind == kClockOfSleeper ||
                            kKind == kTimerReplaced || kKind == kClockOfLeaver || kKind == kPinned);
    shared.kind = kKind;
    if (kKind == kOldDescriptor || kKind == kDescriptorReplaced || kKind == kLeaver)
      shared.watches.store(1, relaxed);
    if (kKind == kTimerReplaced) shared.timer.store(kWorkers, relaxed);
    for (unsigned i = 0; i < kWorkers; ++i) {
      workers[i].shared_ = &shared;
      workers[i].index_ = i;
    }
  }
  void thread(unsigned index) {
    if (index < kWorkers) return workers[index].run();
    if (kKind == kLeaver && index == kWorkers) shared.let_leave(kWorkers - 1);
    for (int i = 0; i < kFibers; ++i) shared.make_ready_from_outside();
    if (kKind == kPlainThread && index == kWorkers) shared.watch_descriptor();
    if (kKind >= kDescriptorReplaced && kKind <= kLeaver && index == kWorkers) shared.bring_event();
  }
  void after() { expect(shared.fibers_left == 0, "a fiber was not run"); }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::bounded_search;
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "sleep",
             {bounded_search<Outside<1, 1, 1>>("one worker", 2),
              // This test comes first, because only such tests find faults of a worker that leaves.
              random_search<Outside<2, 1, 1, kLeaver>>("one leaves", 10'000),
              random_search<Outside<3, 1, 1, kLeaver>>("three workers, one leaves", 10'000),
              random_search<Outside<3, 1, 1, kClockOfLeaver>>("one leaves a timer", 10'000),
              random_search<Outside<2, 1, 2>>("two workers, one adder", 40'000),
              random_search<Outside<2, 2, 1>>("two workers, two adders", 40'000),
              random_search<Outside<3, 2, 2>>("three workers, two adders", 20'000),
              random_search<Outside<2, 2, 1, kFibersMeet>>("two fibers that meet", 40'000),
              random_search<Outside<3, 3, 1, kFibersMeet>>("three fibers that meet", 40'000),
              random_search<Outside<2, 1, 1, kKernel>>("one computes, an event comes", 40'000),
              random_search<Outside<3, 1, 1, kKernel>>("three workers, an event comes", 20'000),
              random_search<Outside<2, 1, 1, kOldDescriptor>>("one computes, another watches",
                                                              400'000),
              random_search<Outside<2, 1, 1, kClock>>("one computes, a timer is due", 40'000),
              random_search<Outside<3, 1, 1, kClock>>("three workers, a timer is due", 20'000),
              random_search<Outside<2, 1, 1, kClockOfSleeper>>("a sleeper has set a timer", 40'000),
              random_search<Outside<3, 1, 1, kClockOfSleeper>>("the same, three workers", 40'000),
              random_search<Outside<2, 1, 1, kTimerReplaced>>("a timer in place of another",
                                                              40'000),
              random_search<Outside<3, 1, 1, kTimerReplaced>>("the same, three workers", 40'000),
              random_search<Outside<2, 1, 1, kDescriptorReplaced>>(
                  "a descriptor in place of another", 40'000),
              random_search<Outside<3, 1, 1, kDescriptorReplaced>>("the same, three workers",
                                                                   40'000),
              random_search<Outside<3, 1, 1, kPlainThread>>("a plain thread watches", 20'000),
              random_search<Outside<2, 1, 1, kPinned>>("a timer of a pinned fiber", 40'000),
              random_search<Outside<3, 1, 1, kPinned>>("the same, three workers", 20'000)},
             {weft::model::relaxed_orders(), weft::model::no_fences(),
              broken_by(kAdderWithoutFence, "the adder omits its fence"),
              broken_by(kSearcherLooksAway, "the last searcher does not look again"),
              broken_by(kNeverEndsSearch, "a chosen sleeper forgets that it searches"),
              broken_by(kWatchNotMinded, "no worker that is awake minds the watch"),
              broken_by(kTimerUntoldBySleeper, "a sleeper tells the holder of no timer"),
              broken_by(kDescriptorUntold, "no worker is told of the first descriptor"),
              broken_by(kSourceIgnored, "the holder is left outside of the event source"),
              broken_by(kToldIsForgotten, "the holder rises later than it has told"),
              broken_by(kLeavesInSilence, "a worker leaves and wakes no other"),
              broken_by(kTimerUntoldByLeaver, "a worker that leaves tells the holder of no timer"),
              broken_by(kPinnedOverlooked, "a worker sleeps without a look at its pinned fibers")})
      .run(count, arguments);
}
