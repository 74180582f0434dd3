// Tests a pool's decisions without locks, fibers or a clock.
#include "pool/core/pool_state.hpp"

#include <cstddef>
#include <memory>
#include <vector>
#include <weft/detail/attributed_job.hpp>

#include "tests/pool/property/limit.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace weft;
using detail::PoolItem;
using pool::Effects;
using pool::PoolState;
using pool::PoolWorker;
using pool::Submitter;
using pool::TaskQueue;
using Outcome = detail::PoolJob::Outcome;

// Holds a pool's state, and memory for its queue.
struct Held {
  explicit Held(PoolOptions its_options, bool is_sub_pool = false)
      : options(std::move(its_options)), state(options, is_sub_pool) {
    make_room();
  }
  void make_room() {
    TaskQueue::Memory rest = state.queue.add(TaskQueue::make_memory(state.queue.demand_for({})));
  }
  PoolItem item() {
    return {std::in_place, [] {}};
  }
  // Submits a task; returns whether it was accepted.
  bool submit() {
    PoolItem task = item();
    if (state.must_wait(task, 1)) return false;
    if (!state.queue.has_room_for(task)) make_room();
    state.accept(task);
    return true;
  }
  // Adds a submitter that waits for room with a task.
  Submitter& block() {
    items.push_back(std::make_unique<PoolItem>(item()));
    submitters.push_back(std::make_unique<Submitter>());
    Submitter& submitter = *submitters.back();
    submitter.slot = items.back().get();
    state.waiters.blocked.push_back(submitter);
    return submitter;
  }

  PoolOptions options;
  std::vector<std::unique_ptr<PoolItem>> items;
  std::vector<std::unique_ptr<Submitter>> submitters;
  PoolState state;
};

// Simulates a pool's workers without fibers: the test decides when a task ends. With
// `takes_short_way`, plain tasks take the fast path wherever the state permits.
class Workers {
 public:
  Workers(const PoolOptions& options, bool takes_short_way)
      : held_(options), takes_short_way_(takes_short_way) {}

  void submit(int number) {
    PoolState& state = held_.state;
    PoolItem item(std::in_place, [this, number] { begun_.push_back(number); });
    if (takes_short_way_ && state.needs_only_push()) {
      ++short_ways_;
      return state.push(item);
    }
    if (!state.must_wait(item, 1)) return state.accept(item);
    if (state.waiters.blocked.size() < 3) held_.block();
  }
  void start_worker() {
    PoolState& state = held_.state;
    if (state.workers.live() >= state.workers.limit()) return;
    state.workers.begin_start();
    CHECK(state.workers.arrive());
    look_for_task();
  }
  // Ends one running task.
  void end(Outcome outcome) {
    PoolState& state = held_.state;
    if (state.slots.running() == 0) return;
    if (takes_short_way_ && state.needs_only_pop()) {
      PoolItem next;
      state.end_and_pop(next, outcome);
      ++short_ways_;
      return next.task.run();
    }
    Effects effects;
    state.end(1, outcome);
    state.tell_counted(effects);
    look_for_task();
  }
  [[nodiscard]] PoolState& state() { return held_.state; }
  [[nodiscard]] const std::vector<int>& begun() const { return begun_; }
  [[nodiscard]] int short_ways() const { return short_ways_; }

 private:
  void look_for_task() {
    PoolState& state = held_.state;
    Effects effects;
    PoolItem next;
    if (!state.workers.has_surplus() && !state.paused && state.take(next, 0, effects)) {
      return next.task.run();
    }
    state.retire_self(effects);
  }

  std::vector<int> begun_;
  int short_ways_ = 0;
  Held held_;
  bool takes_short_way_;
};

// Returns a task with options, whose pool pointer is never dereferenced.
PoolItem item_with(const SubmitOptions& options) {
  alignas(std::max_align_t) static unsigned char no_pool[1];
  auto* task = new detail::AttributedTask(reinterpret_cast<const pool::PoolCore&>(no_pool));
  PoolItem item(*task);
  task->set(options, {}, [] {});
  return item;
}

TEST_SUITE_BEGIN("pool/pool_state");

TEST_CASE("PoolState's fast path gives the same results as its general path") {
  const PoolOptions options{.capacity = 3, .queue_capacity = 4};
  Workers short_way(options, true);
  Workers long_way(options, false);
  test::Random random(1);
  for (int i = 0; i < 5'000; ++i) {
    const std::uint64_t what = random.below(16);
    const std::uint64_t number = random.below(4);
    for (Workers* each : {&short_way, &long_way}) {
      PoolState& state = each->state();
      if (what < 6) each->submit(i);
      if (what >= 6 && what < 12) each->end(number == 0 ? Outcome::failed : Outcome::completed);
      if (what == 12) each->start_worker();
      if (what == 13) state.paused = number == 0;
      if (what == 14) state.resize(1 + number);
      if (what == 15) state.counters.next_awaited = state.counters.ended() + 1 + number;
    }
    const PoolStats is = short_way.state().read();
    const PoolStats expected = long_way.state().read();
    CHECK(is.live == expected.live);
    CHECK(is.busy == expected.busy);
    CHECK(is.queued == expected.queued);
    CHECK(is.blocked == expected.blocked);
    CHECK(is.submitted == expected.submitted);
    CHECK(is.completed == expected.completed);
    CHECK(is.failed == expected.failed);
    CHECK(short_way.state().slots.load() == long_way.state().slots.load());
    CHECK(short_way.state().left_queue() == long_way.state().left_queue());
    CHECK(short_way.begun().size() == long_way.begun().size());
  }
  CHECK(short_way.begun() == long_way.begun());
  CHECK(short_way.short_ways() > 100);
}

TEST_CASE("PoolState accepts a task while a slot is free or the queue has room") {
  Held held({.capacity = 1, .queue_capacity = 1});
  CHECK(held.submit());
  CHECK(held.submit());
  CHECK(!held.submit());
  Effects effects;
  PoolItem running;
  held.state.workers.begin_start();
  CHECK(held.state.workers.arrive());
  CHECK(held.state.take(running, 0, effects));
  CHECK(!held.submit());
  held.state.end(1, Outcome::completed);
  CHECK(held.submit());
  CHECK(held.state.read().completed == 1);
}

TEST_CASE("PoolState admits blocked submitters in FIFO order when room appears") {
  Held held({.capacity = 1, .queue_capacity = 1});
  CHECK(held.submit());
  CHECK(held.submit());
  Submitter& first = held.block();
  Submitter& second = held.block();
  Effects effects;
  held.state.admit_blocked(effects);
  CHECK(!first.granted);
  PoolItem running;
  CHECK(held.state.take(running, 0, effects));
  CHECK(!first.granted);
  held.state.end(1, Outcome::failed);
  held.state.admit_blocked(effects);
  CHECK(first.granted);
  CHECK(!second.granted);
  CHECK(!held.submit());  // No submitter may overtake.
  held.state.slots.resize(2);
  held.state.admit_blocked(effects);
  CHECK(second.granted);
}

// A sub-pool that waits for room is no parked caller, so admitting it wakes no waiter: a worker
// that went idle then would leave the task behind.
TEST_CASE(
    "a worker that admits a blocked submitter runs the submitter's task before a queued heavy "
    "task") {
  Held held({.capacity = 2, .queue_capacity = 8});
  Effects effects;
  PoolItem running;
  CHECK(held.submit());
  CHECK(held.state.take(running, 0, effects));
  PoolItem heavy = item_with({.weight = 2});
  held.state.accept(heavy);
  held.block();
  *held.items.back() = item_with({.priority = Priority::high});
  PoolItem next;
  CHECK(held.state.take(next, 0, effects));
  CHECK(TaskQueue::weight_of(next) == 1);
  CHECK(effects.empty());
}

TEST_CASE("PoolState wakes few workers for many short tasks, and no worker during a pause") {
  Held held({.capacity = 8, .queue_capacity = 30});
  std::vector<PoolWorker> workers(4);
  held.state.set_limit(8);
  for (PoolWorker& worker : workers) {
    held.state.workers.begin_start();
    CHECK(held.state.workers.arrive());
    held.state.workers.go_idle(worker);
  }
  CHECK(held.submit());
  CHECK(held.state.should_call_worker());
  CHECK(&held.state.workers.call() == &workers.back());  // The worker that became idle last.
  for (int i = 0; i < 15; ++i) CHECK(held.submit());
  CHECK(!held.state.should_call_worker());
  CHECK(held.submit());
  CHECK(held.state.should_call_worker());
  held.state.paused = true;
  CHECK(!held.state.should_call_worker());
}

TEST_CASE(
    "the workers that have been idle longest retire first, and starting workers retire last") {
  Held held({.capacity = 4});
  std::vector<PoolWorker> idle(2);
  held.state.set_limit(4);
  for (PoolWorker& worker : idle) {
    held.state.workers.begin_start();
    CHECK(held.state.workers.arrive());
    held.state.workers.go_idle(worker);
  }
  held.state.workers.begin_start();
  held.state.resize(2);
  Effects effects;
  held.state.workers.retire_surplus(effects);
  CHECK(idle.front().retired);
  CHECK(!idle.back().retired);
  held.state.resize(1);
  held.state.workers.retire_surplus(effects);
  CHECK(idle.back().retired);
  CHECK(held.state.workers.live() == 1);
  held.state.workers.set_limit(0);
  held.state.workers.retire_surplus(effects);
  CHECK(!held.state.workers.arrive());  // The worker is retired when it arrives.
  CHECK(held.state.workers.retired() == 3);
}

TEST_CASE("a worker is due to retire after two complete idle periods, and not before") {
  Held held({.capacity = 1});
  PoolWorker idle;
  held.state.set_limit(1);
  held.state.workers.begin_start();
  CHECK(held.state.workers.arrive());
  held.state.workers.go_idle(idle);
  for (const bool is_stale : {false, false, true}) {
    CHECK(held.state.workers.coldest_is_stale() == is_stale);
    held.state.workers.end_epoch();
  }
}

TEST_CASE(
    "a closed sub-pool removes its pending drain tasks from the parent unless a submitter is "
    "blocked") {
  Effects effects;
  Held root({.capacity = 2});
  Held sub_pool({.capacity = 2}, true);
  for (Held* held : {&root, &sub_pool}) {
    held->state.workers.begin_start();
    held->state.closed = true;
  }
  root.state.retire_all_without_task(effects);
  CHECK(root.state.workers.starting() == 1);
  Submitter& blocked = sub_pool.block();
  sub_pool.state.retire_all_without_task(effects);
  CHECK(sub_pool.state.workers.starting() == 1);
  sub_pool.state.waiters.blocked.erase(blocked);
  sub_pool.state.retire_all_without_task(effects);
  CHECK(sub_pool.state.workers.starting() == 0);
}

TEST_CASE("a pool stays paused when only one of two pauses ends") {
  Held held({.capacity = 1});
  const std::uint64_t first = held.state.hold_pause();
  const std::uint64_t second = held.state.hold_pause();
  CHECK(held.state.paused);
  CHECK(!held.state.release_pause(first));
  CHECK(held.state.release_pause(second));
  CHECK(!held.state.release_pause(second));
}

TEST_CASE("the maximum number of workers under a load factor changes as in a reference model") {
  test::Random random;
  for (int run = 0; run < 200; ++run) {
    const double up = 0.5 * static_cast<double>(1 + random.below(8));
    const PoolOptions options{
        .capacity = 1 + random.below(20),
        .grow = GrowPolicy::load_factor({.up = up, .down = up / 2, .step = 1 + random.below(5)}),
        .min_workers = random.below(2)};
    Held held(options);
    PoolState& state = held.state;
    test::ModelLimit limit(options);
    state.autoscaler.begin();
    state.set_limit(state.workers.limit());
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t what = random.below(5);
      if (what == 0) {
        const std::size_t capacity = 1 + random.below(20);
        state.resize(capacity);
        limit.fit(capacity, false);
      } else if (what < 3) {
        state.raise_limit();
        limit.raise();
      } else {
        state.lower_limit();
        limit.lower();
      }
      CHECK(state.workers.limit() == limit.value());
      const std::size_t tasks = random.below(60);
      CHECK((tasks > state.raise_at) == limit.is_too_low_for(tasks));
    }
  }
}

TEST_CASE("PoolState drops tasks to accept a task with a key only if that task then fits") {
  Held held({.capacity = 4, .queue_capacity = 2, .on_full = OnFull::drop_oldest});
  PoolItem holder = item_with({.key = 1});
  TaskQueue::Memory rest =
      held.state.queue.add(TaskQueue::make_memory(held.state.queue.demand_for(holder)));
  held.state.accept(holder);
  CHECK(held.state.can_drop_for(item_with({.key = 1, .weight = 2})));
  CHECK(!held.state.can_drop_for(item_with({.key = 1, .weight = 3})));
  CHECK(held.state.can_drop_for(item_with({.key = 2, .weight = 3})));
}

TEST_CASE(
    "a sub-pool requests no further drain task when the parent already has all its drain tasks") {
  Held held({.capacity = 1, .queue_capacity = 1}, true);
  CHECK(held.state.must_wait_at_parent(1));
  held.state.workers.begin_start();
  CHECK(!held.state.must_wait_at_parent(1));
  CHECK(held.state.workers.arrive());
  CHECK(!held.state.must_wait_at_parent(1));
}

TEST_CASE("a sub-pool requests no further drain task for a blocked caller while one is starting") {
  Held held({.capacity = 2, .queue_capacity = 1}, true);
  held.state.workers.begin_start();
  CHECK(!held.state.must_wait_at_parent(1));
  CHECK(held.state.workers.arrive());
  CHECK(held.state.must_wait_at_parent(1));
}

TEST_SUITE_END();

}  // namespace
