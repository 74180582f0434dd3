// pool/core/ and pool/queue/ as a whole: two submitters, two workers and a closer, which destroys
// the pool as soon as the pool is joined. An accepted task runs once, or a close drops and reports
// it. No caller waits forever, and no caller accesses the pool after its destruction.
#include <cstdlib>
#include <stop_token>  // Precedes the checker, which redefines words of it.

#include <weft/detail/atomic.hpp>

// Only its owner uses a task's word, and queues move the word without a destructor, which the
// checker would report as a leak. So the word is plain here. The data that tasks touch shows that
// owners follow one another in order.
namespace weft::detail {
template <class T>
class PlainAtomic {
 public:
  explicit PlainAtomic(T initial) : value_(initial) {}
  [[nodiscard]] T load(std::memory_order /*order*/) const { return value_; }
  void store(T desired, std::memory_order /*order*/) { value_ = desired; }

 private:
  T value_;
};
}  // namespace weft::detail
#define Atomic PlainAtomic
#include <weft/detail/task.hpp>
#undef Atomic

#include "tests/model/model_waist.hpp"

// The model has no forks. It traces nothing, because the trace flag would belong to no
// interleaving.
#include <weft/detail/fork.hpp>
#include <weft/detail/trace_event.hpp>
namespace weft::detail {
constexpr bool is_never_tracing() noexcept { return false; }
bool runtime_is_ending() noexcept { return false; }
std::size_t processors() noexcept { return 2; }
std::uint32_t forks() noexcept { return 0; }
ForkHandlers::ForkHandlers(Locks, Function, Function, Function)
    : before_(nullptr), in_parent_(nullptr), in_child_(nullptr) {}
[[noreturn]] void end_with_thread() noexcept { std::abort(); }
}  // namespace weft::detail
#define is_tracing is_never_tracing
#include "pool/core/dispatch.cpp"
#include "pool/core/end_task.cpp"
#include "pool/core/lifecycle.cpp"
#include "pool/core/listing.cpp"
#include "pool/core/pool_state.cpp"
#include "pool/core/submit.cpp"
#include "pool/core/task_runner.cpp"
#include "pool/core/worker_loop.cpp"
#include "pool/queue/key_table.cpp"
#include "pool/queue/pool_job.cpp"
#include "pool/queue/segment_queue.cpp"
#include "pool/queue/task_queue.cpp"
#undef is_tracing

#include "base/error.cpp"

namespace {

using weft::Close;
using weft::OnFull;
using weft::detail::acquire;
using weft::detail::Atomic;
using weft::detail::PoolItem;
using weft::detail::release;
using weft::model::Data;
using weft::model::expect;
using weft::model::fault;
using weft::model::perhaps;
using weft::model::World;
using weft::pool::PoolCore;

enum Fault { kNone, kForgetsToStart, kDestroysUnjoined };

// Callers 0 and 1 are fibers that wait to be spawned as workers.
constexpr unsigned kWorkers = 2;

struct Spawned {
  enum Signal : std::uint32_t { kNothing, kStart, kLeave };

  void send(Signal value) {
    signal.store(value, release);
    weft::model::wake_in_kernel(signal, 1);
  }
  // Waits for work; returns whether there is any.
  bool wait() {
    std::uint32_t value = kNothing;
    while ((value = signal.exchange(kNothing, acquire)) == kNothing) {
      weft::model::wait_in_kernel(signal, kNothing, weft::model::WaitEnd::by_wake);
    }
    return value == kStart;
  }

  weft::detail::Task task;
  Atomic<std::uint32_t> signal{kNothing};
};
// The workers of the current interleaving.
Spawned* spawned = nullptr;
unsigned spawn_count = 0;  // Not modelled: the spawner has counted itself.

}  // namespace

// Short replacements for functions that the core calls.
namespace weft {
std::uint64_t this_fiber::id() noexcept { return 0; }
void this_fiber::set_name(std::string_view /*name*/) noexcept {}
namespace detail {
void spawn(Task&& task, const SpawnOptions& /*options*/) {
  expect(spawn_count < kWorkers, "more workers were started than may live");
  Spawned& place = spawned[spawn_count++];
  place.task = std::move(task);
  if (fault != kForgetsToStart) place.send(Spawned::kStart);
}
Alarm* set_alarm(Deadline /*deadline*/, Task&& /*task*/) { return nullptr; }
void trace_text(TraceKind /*kind*/, std::string_view /*text*/) noexcept {}
}  // namespace detail
namespace pool {
void report(const PoolOptions& /*options*/, const std::exception_ptr& /*exception*/,
            const TaskInfo& /*task*/) noexcept {}
}  // namespace pool
}  // namespace weft

namespace {

// The pool has no sub-pools and no parent.
class NoNesting final : public weft::pool::Nesting {
 public:
  explicit NoNesting(PoolCore& core) : core_(core) {}
  void begin() noexcept override {}
  void end() noexcept override {}
  std::error_code ask_for_worker(OnFull /*when_full*/,
                                 weft::pool::Effects& /*effects*/) noexcept override {
    return {};
  }
  void lock_with_sub_pools_closed(Close /*mode*/) noexcept override { core_.lock(); }

 private:
  PoolCore& core_;
};

void no_body(PoolCore& /*core*/) {}
void run_worker(PoolCore& core) {
  PoolItem item;
  weft::pool::WorkerObjects none;
  weft::pool::run_tasks(core, item, none);
  core.leave();
}
void run_stranded(PoolCore& core, PoolItem& item, weft::pool::PoolWorker& self) {
  core.runner().run(item, self);
}
constexpr PoolCore::Bodies kBodies{.worker = run_worker,
                                   .reaper = no_body,
                                   .autoscaler = no_body,
                                   .ticker = no_body,
                                   .stranded = run_stranded};

struct Fate {
  Data<int> runs{0};
  bool accepted = false;  // This member and the next are not modelled.
  bool began = false;
};

template <std::size_t kCapacity, Close kMode, unsigned kTasks>
struct Life : rl::test_suite<Life<kCapacity, kMode, kTasks>, 10> {
  static constexpr unsigned kSubmitters = 2;
  static constexpr unsigned kCloser = kWorkers + kSubmitters;

  World world{kCloser + 1, false};
  Spawned places[kWorkers];
  Fate fates[kSubmitters][kTasks];
  PoolCore* core = nullptr;
  Atomic<std::uint32_t> submitting{kSubmitters};
  bool close_has_returned = false;
  std::size_t may_begin = 0;

  void before() {
    spawned = places;
    spawn_count = 0;
    world.make_thread(kWorkers);  // One of the submitters is a plain thread.
    weft::PoolOptions options;
    options.capacity = kCapacity;
    options.queue_capacity = 1;
    options.idle_timeout = weft::kNever;
    core = new PoolCore(std::move(options), kBodies, nullptr);
    core->make_nesting<NoNesting>();
  }

  void run_task(Fate& fate) {
    if (close_has_returned && kMode != Close::drain) {
      // Only tasks that a worker had already taken may start.
      expect(may_begin > 0, "a task was started after the close");
      --may_begin;
    }
    expect(!fate.began, "a task ran twice");
    fate.began = true;
    fate.runs.set(fate.runs.get() + 1);
  }
  // Does the same as PoolEntry::enqueue().
  bool submit(PoolItem& item) {
    if (core->submit_at_once(item)) return true;
    const PoolCore::Answer answer = core->submit(item, OnFull::block);
    if (answer.next == PoolCore::Next::nothing) return static_cast<bool>(answer.accepted);
    return !core->submit_blocking(item, {});
  }
  void submit_all(Fate (&fates_of_one)[kTasks]) {
    for (Fate& fate : fates_of_one) {
      PoolItem item(std::in_place, [this, &fate] { run_task(fate); });
      fate.accepted = submit(item);
    }
    if (submitting.fetch_sub(1, weft::detail::acq_rel) == 1) {
      weft::model::wake_in_kernel(submitting, 1);
    }
  }
  void close_and_join() {
    if (perhaps()) world.await_parked(2);
    core->close(kMode);
    may_begin = core->locked(&weft::pool::PoolState::read).busy;
    close_has_returned = true;
    // Waits for submitters: a call to a destroyed pool would be a misuse by the caller.
    for (std::uint32_t left = 0; (left = submitting.load(acquire)) != 0;) {
      weft::model::wait_in_kernel(submitting, left, weft::model::WaitEnd::by_wake);
    }
    if (fault != kDestroysUnjoined) {
      expect(core->wait(weft::pool::Condition::joined, 0, {}), "a join was given up");
    }
    delete core;
    for (unsigned i = spawn_count; i < kWorkers; ++i) places[i].send(Spawned::kLeave);
    for (auto& of_one : fates) {
      for (Fate& fate : of_one) {
        const bool ran = fate.runs.get() == 1;
        expect(fate.accepted || !ran, "a task ran that was refused");
        if (kMode == Close::drain) expect(ran == fate.accepted, "an accepted task did not run");
      }
    }
  }

  void thread(unsigned index) {
    world.run(index, [this](unsigned caller) {
      if (caller < kWorkers) {
        if (places[caller].wait()) places[caller].task.run();
      } else if (caller < kCloser) {
        submit_all(fates[caller - kWorkers]);
      } else {
        close_and_join();
      }
    });
  }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::broken_by;
  using weft::model::random_search;
  weft::model::Program program(
      "pool_core",
      {random_search<Life<1, Close::drain, 1>>("one worker, drained", 8'000),
       random_search<Life<1, Close::drain, 3>>("one worker, full, drained", 8'000),
       random_search<Life<2, Close::drain, 2>>("two workers, drained", 8'000),
       random_search<Life<2, Close::discard, 3>>("two workers, full, discarded", 8'000)},
      {weft::model::relaxed_orders(), broken_by(kForgetsToStart, "a worker is never started"),
       broken_by(kDestroysUnjoined, "the pool is destroyed without a join")});
  return program.run(count, arguments);
}
