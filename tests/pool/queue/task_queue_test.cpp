// Tests the order in which tasks with options leave the queue, and the cost.
#include "pool/queue/task_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>
#include <weft/detail/attributed_job.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace weft;
using detail::AttributedTask;
using detail::PoolItem;
using detail::TaskAttributes;
using pool::TaskQueue;

// The pointer is never dereferenced.
alignas(std::max_align_t) unsigned char no_pool[1];

PoolItem item_with(const SubmitOptions& options) {
  auto* task = new AttributedTask(reinterpret_cast<const pool::PoolCore&>(no_pool));
  PoolItem item(*task);
  task->set(options, {}, [] {});
  return item;
}

void make_room_for(TaskQueue& queue, const PoolItem& item) {
  while (!queue.has_room_for(item)) {
    TaskQueue::Memory rest = queue.add(TaskQueue::make_memory(queue.demand_for(item)));
  }
}

void push(TaskQueue& queue, const SubmitOptions& options) {
  PoolItem item = item_with(options);
  make_room_for(queue, item);
  queue.push(std::move(item));
}

// Pops a task, and ends it at once.
void run_next(TaskQueue& queue) {
  PoolItem item;
  queue.pop(item);
  TaskAttributes* const attributes = TaskQueue::attributes_of(item);
  if (attributes != nullptr && attributes->key.is_set()) queue.pass_on_key(*attributes);
}

// Returns the time that `held` tasks of a busy key take if they precede `others` in the queue.
std::chrono::nanoseconds time_of_key(int held, int others) {
  TaskQueue queue;
  PoolItem holder;
  push(queue, {.key = -1});
  queue.pop(holder);
  for (int i = 0; i < held; ++i) push(queue, {.key = -1});
  for (int i = 0; i < others; ++i) push(queue, {.key = i});
  const auto start = std::chrono::steady_clock::now();
  queue.pass_on_key(*TaskQueue::attributes_of(holder));
  for (int i = 0; i < held; ++i) run_next(queue);
  return std::chrono::steady_clock::now() - start;
}

TEST_SUITE_BEGIN("pool/queue");

TEST_CASE(
    "submitting a task whose key is in use takes equally long whether few or many tasks are "
    "waiting") {
  constexpr int kHeld = 1'000;
  // Uses the shortest of several times, because disturbances of the machine only lengthen them.
  auto few = std::chrono::nanoseconds::max();
  auto many = std::chrono::nanoseconds::max();
  const auto is_same = [&] { return many / 10 < few; };
  for (int i = 0; i < 5 || (i < 20 && !is_same()); ++i) {
    few = std::min(few, time_of_key(kHeld, 1'000));
    many = std::min(many, time_of_key(kHeld, 50'000));
  }
  CHECK(is_same());  // A walk past the others would take 50 times as long.
}

TEST_CASE(
    "a priority level's heap stays balanced and returns the oldest task first when tasks arrive "
    "out of order") {
  constexpr std::uint64_t kLate = 2'000;
  std::vector<PoolItem> items;
  pool::PriorityLevel level;
  for (std::uint64_t i = 0; i <= kLate; ++i) {
    TaskAttributes& attributes =
        *TaskQueue::attributes_of(items.emplace_back(item_with({.key = 1})));
    attributes.number =
        i == 0 ? 2 * kLate : i;  // All others arrive later than the first, but are older.
    level.insert(attributes);
  }
  std::uint64_t deep = 0;
  for (const TaskAttributes* at = level.front(); at != nullptr; at = at->previous) ++deep;
  CHECK(deep <= 11);  // The depth of a heap with 2 047 entries.
  for (std::uint64_t i = 1; i <= kLate; ++i) {
    CHECK(level.front()->number == i);
    level.pop_front();
  }
}

TEST_CASE("tasks with a key leave the task queue in the order of acceptance, one at a time") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    test::Random random(seed);
    TaskQueue queue;
    std::map<std::uint64_t, std::uint64_t> last_of_key;
    std::vector<std::unique_ptr<PoolItem>> running;
    std::size_t pushed = 0;
    std::size_t ended = 0;
    std::size_t held_weight = 0;
    while (ended < 300) {
      if (pushed < 300 && random.one_in(2)) {
        push(queue, {.key = random.below(8), .weight = 1 + random.below(3)});
        ++pushed;
      }
      if (queue.startable() > 0 && running.size() < 4) {
        auto item = std::make_unique<PoolItem>();
        queue.pop(*item);
        const TaskAttributes& attributes = *TaskQueue::attributes_of(*item);
        CHECK(attributes.number > last_of_key[attributes.key.hash()]);
        last_of_key[attributes.key.hash()] = attributes.number;
        for (const auto& other : running) {
          CHECK(TaskQueue::attributes_of(*other)->key.hash() != attributes.key.hash());
        }
        running.push_back(std::move(item));
      }
      if (!running.empty() && random.one_in(2)) {
        const auto it = running.begin() + static_cast<std::ptrdiff_t>(random.below(running.size()));
        queue.pass_on_key(*TaskQueue::attributes_of(**it));
        running.erase(it);
        ++ended;
      }
      CHECK(queue.held_up_weight() >= queue.size() - queue.startable());
      held_weight = std::max(held_weight, queue.held_up_weight());
    }
    CHECK(queue.empty());
    CHECK(queue.held_up_weight() == 0);
    CHECK(held_weight > 0);
  }
}

TEST_CASE("how often a new task is passed over does not depend on the tasks that ran before it") {
  const auto turns_before_normal = [](int left_before) {
    TaskQueue queue;
    for (int i = 0; i <= left_before; ++i) push(queue, {.priority = Priority::normal});
    for (int i = 0; i < left_before; ++i) run_next(queue);
    for (int i = 0; i < 200; ++i) push(queue, {.priority = Priority::high});
    for (int turns = 0;; ++turns) {
      PoolItem item;
      queue.pop(item);
      if (TaskQueue::attributes_of(item)->priority == Priority::normal) return turns;
    }
  };
  const int turns = turns_before_normal(0);
  CHECK(turns > 0);
  CHECK(turns < 200);
  CHECK(turns_before_normal(1) == turns);
  CHECK(turns_before_normal(5) == turns);
}

TEST_CASE("a task queue returns the earliest accepted task that may start") {
  TaskQueue queue;
  PoolItem holder;
  push(queue, {.key = 0});
  queue.pop(holder);
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 20; ++i) push(queue, {.key = i % 2});  // Every second task is held up.
  const auto note_next = [&] {
    PoolItem item;
    queue.pop(item);
    order.push_back(TaskQueue::attributes_of(item)->number);
    queue.pass_on_key(*TaskQueue::attributes_of(item));
  };
  for (int i = 0; i < 3; ++i) note_next();
  queue.pass_on_key(*TaskQueue::attributes_of(holder));
  while (!queue.empty()) note_next();
  CHECK(order.size() == 20);
  // The late tasks are older than the rest, so each precedes the rest.
  CHECK(order[3] == 2);
  CHECK(std::is_sorted(order.begin() + 3, order.end()));
}

TEST_SUITE_END();

}  // namespace
