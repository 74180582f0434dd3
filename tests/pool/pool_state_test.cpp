// A pool's decisions, without a lock, a fiber or a clock.
#include "pool/core/pool_state.hpp"

#include <cstddef>
#include <memory>
#include <vector>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace weft;
using detail::PoolItem;
using pool::Effects;
using pool::PoolState;
using pool::Submitter;
using pool::TaskQueue;
using pool::Worker;
using Outcome = detail::PoolJob::Outcome;

// A pool's state with memory for its queue.
struct Held {
  explicit Held(PoolOptions its_options) : options(std::move(its_options)), state(options, false) {
    TaskQueue::Memory rest = state.queue.add(TaskQueue::make_memory(state.queue.demand_for({})));
  }
  PoolItem item() {
    return {std::in_place, [] {}};
  }
  // Whether a task was accepted.
  bool submit() {
    PoolItem task = item();
    if (state.must_wait(task, 1)) return false;
    state.accept(task);
    return true;
  }
  // Somebody who waits for room with a task.
  Submitter& block() {
    items.push_back(std::make_unique<PoolItem>(item()));
    submitters.push_back(std::make_unique<Submitter>());
    Submitter& submitter = *submitters.back();
    submitter.slot = items.back().get();
    ++state.waiters.blocked_count;
    state.waiters.blocked.push_back(submitter);
    return submitter;
  }

  PoolOptions options;
  std::vector<std::unique_ptr<PoolItem>> items;
  std::vector<std::unique_ptr<Submitter>> submitters;
  PoolState state;
};

TEST_SUITE_BEGIN("pool/pool_state");

TEST_CASE("a task is accepted while a slot or a place is free for it") {
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

TEST_CASE("who is blocked is let in by what makes room, first come, first served") {
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
  CHECK(!held.submit());  // Nobody overtakes.
  held.state.slots.resize(2);
  held.state.admit_blocked(effects);
  CHECK(second.granted);
}

TEST_CASE("few workers are called for many short tasks, and none in a pause") {
  Held held({.capacity = 8, .queue_capacity = 30});
  std::vector<Worker> workers(4);
  held.state.set_limit(8);
  for (Worker& worker : workers) {
    held.state.workers.begin_start();
    CHECK(held.state.workers.arrive());
    held.state.workers.go_idle(worker);
  }
  CHECK(held.submit());
  CHECK(held.state.should_call_worker());
  CHECK(&held.state.workers.call() == &workers.back());  // The hottest.
  for (int i = 0; i < 15; ++i) CHECK(held.submit());
  CHECK(!held.state.should_call_worker());
  CHECK(held.submit());
  CHECK(held.state.should_call_worker());
  held.state.paused = true;
  CHECK(!held.state.should_call_worker());
}

TEST_CASE("workers retire the coldest first, and starting ones after the idle") {
  Held held({.capacity = 4});
  std::vector<Worker> idle(2);
  held.state.set_limit(4);
  for (Worker& worker : idle) {
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
  CHECK(!held.state.workers.arrive());  // It learns of it when it comes.
  CHECK(held.state.workers.retired() == 3);
}

TEST_CASE("a pause that is held does not end with another's") {
  Held held({.capacity = 1});
  const std::uint64_t first = held.state.hold_pause();
  const std::uint64_t second = held.state.hold_pause();
  CHECK(held.state.paused);
  CHECK(!held.state.release_pause(first));
  CHECK(held.state.release_pause(second));
  CHECK(!held.state.release_pause(second));
}

TEST_SUITE_END();

}  // namespace
