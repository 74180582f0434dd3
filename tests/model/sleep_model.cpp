// scheduler/idle_set.cpp and the sequences around it: work that comes from outside is not left
// lying while all workers sleep, and a burst of it wakes one searcher.
//
// A worker needs stacks, timers and a poller, so its sequences are repeated here, reduced to what
// concerns sleeping. Who changes one of the functions named below changes its copy as well.
#include "scheduler/idle_set.cpp"

#include <utility>

#include "tests/model/model_futex.hpp"

#define syscall weft::model::futex_syscall
#include "base/parker.cpp"
#undef syscall

namespace {

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
using weft::model::perhaps;
using weft::scheduler::IdleSet;

enum Fault {
  kNone,
  kAdderWithoutFence,
  kSleeperLooksFirst,
  kSearcherLeavesSilently,
  kNapsUnannounced,
  kIgnoresChoice,
  kForgetsToSearchAgain,
};

// Fibers made runnable from outside, of which only the number matters. The weakest queue that the
// protocol may be used with: a look may be stale, and pushing orders nothing else.
class InjectQueue {
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

// What the workers share: the part of Scheduler that concerns sleeping.
struct Shared {
  Shared(Worker* first, unsigned count, unsigned fibers)
      : idle(count), workers(first), worker_count(count), fibers_left(fibers) {}

  // Scheduler::make_ready_from_outside.
  void make_ready_from_outside();
  // Scheduler::wake_one.
  void wake_one();
  // Scheduler::stop, by whoever runs the last fiber.
  void stop();
  [[nodiscard]] bool has_work_hint() const { return !inject_queue.empty_hint(); }

  Aligned<IdleSet> idle;
  InjectQueue inject_queue;
  Atomic<Worker*> napper{nullptr};
  Atomic<bool> stopping{false};
  Atomic<bool> poller_owned{false};
  Elsewhere poller;
  Worker* workers;
  unsigned worker_count;
  // Bookkeeping that is not part of the modelled program.
  unsigned fibers_left;
  bool fibers_meet = false;
  Atomic<std::uint32_t> last_runs{0};
  int woken_searchers = 0;  // Woken for work, and still counted as searching.
};

struct Worker {
  // Worker::run.
  void run() {
    while (find_work()) {
      if (searching) end_search();
      const unsigned left = --shared->fibers_left;
      if (left == 0) shared->stop();
      if (shared->fibers_meet) meet(left == 0);
    }
  }
  // A fiber that keeps its worker until the last fiber runs too, on another worker.
  void meet(bool last) {
    if (last) shared->last_runs.store(1, relaxed);
    if (last) weft::model::wake_in_kernel(shared->last_runs, 16);
    while (shared->last_runs.newest() == 0) {
      weft::model::wait_in_kernel(shared->last_runs, 0, weft::model::WaitEnd::by_wake);
    }
  }
  // Worker::find_work, which also looks at the worker's own queues.
  [[nodiscard]] bool find_work() {
    for (;;) {
      if (shared->inject_queue.pop()) return true;
      if (search()) return true;
      if (!sleep()) return false;
    }
  }
  // Worker::search. Whether others make progress, and so whether it naps, is left to chance.
  [[nodiscard]] bool search() {
    if (shared->worker_count == 1) return false;
    if (!searching) {
      if (!shared->idle->try_begin_search()) return false;
      searching = true;
    }
    for (;;) {
      if (shared->inject_queue.pop()) return true;
      if (shared->stopping.load(acquire) || naps_left == 0 || !perhaps()) return false;
      --naps_left;
      if (fault != kNapsUnannounced) {
        Worker* nobody = nullptr;
        if (!shared->napper.compare_exchange_strong(nobody, this, seq_cst, relaxed)) return false;
      }
      full_fence();
      // The deadline of the nap is left out: it would hide a wake-up that is lost.
      if (shared->inject_queue.empty_hint()) (void)block_until(Deadline::never());
      shared->napper.store(nullptr, relaxed);
    }
  }
  // Worker::end_search.
  void end_search() {
    leave_search();
    if (!shared->idle->end_search()) return;
    full_fence();
    if (fault == kSearcherLeavesSilently) return;
    if (shared->has_work_hint()) shared->wake_one();
  }
  // Worker::sleep, without what it does when a later sleep has ended by itself.
  [[nodiscard]] bool sleep() {
    IdleSet& idle = *shared->idle;
    for (bool napped = false;; napped = true) {
      if (shared->stopping.load(acquire)) return false;
      const bool early_look = shared->has_work_hint();
      idle.begin_sleep(index);
      if (searching) {
        leave_search();
        (void)idle.end_search();
      }
      full_fence();
      const bool work = fault == kSleeperLooksFirst
                            ? early_look
                            : !shared->inject_queue.empty_hint() ||
                                  (!idle.someone_searches_hint() && shared->has_work_hint());
      const bool awake = work || shared->stopping.load(acquire) || block_until(sleep_limit(napped));
      if (!idle.try_end_sleep(index)) {
        if (fault == kIgnoresChoice) return true;
        if (!awake) (void)parker.park_until(Deadline::never());
        searching = true;
        return true;
      }
      if (work && fault != kForgetsToSearchAgain) searching = idle.try_begin_search();
      if (awake) return true;
    }
  }
  // Worker::sleep_limit, without timers, stacks and the watch: only the first sleep ends by itself.
  [[nodiscard]] static Deadline sleep_limit(bool napped) {
    return napped || !weft::model::time_passes ? Deadline::never()
                                               : Deadline::at_nanoseconds(weft::model::kSoon);
  }
  // Worker::block_until. Whether the poller watches anything is left to chance.
  [[nodiscard]] bool block_until(Deadline deadline) {
    if (!perhaps() || shared->poller_owned.load(relaxed) ||
        shared->poller_owned.exchange(true, acquire)) {
      return parker.park_until(deadline);
    }
    bool unparked = true;
    if (parker.begin_elsewhere()) {
      shared->poller.wait(!deadline.is_never());
      unparked = parker.end_elsewhere();
    }
    shared->poller_owned.store(false, release);
    return unparked;
  }
  // Worker::unpark.
  void unpark() {
    if (parker.unpark()) shared->poller.interrupt();
  }

  // Before IdleSet::end_search(): from then on another one may be woken.
  void leave_search() {
    searching = false;
    if (std::exchange(woken_for_work, false)) --shared->woken_searchers;
  }

  Shared* shared = nullptr;
  unsigned index = 0;
  bool searching = false;
  Parker parker;
  // Bookkeeping that is not part of the modelled program.
  bool woken_for_work = false;
  int naps_left = 2;
};

void Shared::make_ready_from_outside() {
  inject_queue.push();
  if (fault != kAdderWithoutFence) full_fence();
  wake_one();
  if (Worker* napping = napper.load(relaxed)) napping->unpark();
}

void Shared::wake_one() {
  const int chosen = idle->work_added();
  if (chosen == IdleSet::kNobody) return;
  Worker& worker = workers[chosen];
  expect(++woken_searchers == 1, "a second searcher was woken while one searched");
  worker.woken_for_work = true;
  worker.unpark();  // Worker::unpark_for_work.
}

void Shared::stop() {
  stopping.store(true, seq_cst);
  full_fence();
  for (unsigned i = 0; i < worker_count; ++i) workers[i].unpark();
}

// Each adder adds so many fibers from outside; the workers run them all and stop. A wake-up that
// is lost leaves everybody asleep, which the checker reports as a deadlock.
// Where fibers meet, two of them need two workers at the same time.
enum Kind { kUntimed, kFirstSleepsEnd, kFibersMeet };
template <int kWorkers, int kAdders, int kFibers, Kind kKind = kUntimed>
struct Outside : rl::test_suite<Outside<kWorkers, kAdders, kFibers, kKind>, kWorkers + kAdders> {
  Worker workers[kWorkers];
  Shared shared{workers, kWorkers, kAdders* kFibers};

  void before() {
    weft::model::reset_time(kKind == kFirstSleepsEnd);
    shared.fibers_meet = kKind == kFibersMeet;
    for (unsigned i = 0; i < kWorkers; ++i) {
      workers[i].shared = &shared;
      workers[i].index = i;
    }
  }
  void thread(unsigned index) {
    if (index < kWorkers) return workers[index].run();
    for (int i = 0; i < kFibers; ++i) shared.make_ready_from_outside();
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
              random_search<Outside<2, 1, 2>>("two workers, one adder", 60'000),
              random_search<Outside<2, 2, 1>>("two workers, two adders", 60'000),
              random_search<Outside<3, 2, 2>>("three workers, two adders", 30'000),
              random_search<Outside<2, 2, 2, kFirstSleepsEnd>>("two workers, first sleeps end",
                                                               30'000),
              random_search<Outside<2, 2, 1, kFibersMeet>>("two fibers that meet", 60'000),
              random_search<Outside<3, 3, 1, kFibersMeet>>("three fibers that meet", 60'000)},
             {weft::model::relaxed_orders(), weft::model::no_fences(),
              broken_by(kAdderWithoutFence, "the adder omits its fence"),
              broken_by(kSleeperLooksFirst, "the sleeper looks before it sets its bit"),
              broken_by(kSearcherLeavesSilently, "the last searcher does not look again"),
              broken_by(kNapsUnannounced, "the napper is not announced"),
              broken_by(kForgetsToSearchAgain,
                        "who finds work when going to sleep does not search"),
              broken_by(kIgnoresChoice, "a chosen sleeper forgets that it searches")})
      .run(count, arguments);
}
