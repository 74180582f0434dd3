// Makes random operations for the property test, and describes them.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>
#include <weft/pool_options.hpp>

#include "tests/pool/property/op.hpp"
#include "tests/support/random.hpp"

namespace weft::test {

[[nodiscard]] inline std::string size_to_string(std::size_t size) {
  return size == kUnlimited ? "kUnlimited" : std::to_string(size);
}

[[nodiscard]] inline std::string to_string(const PoolOptions& options) {
  constexpr std::array kNames{"block", "reject", "caller_runs", "drop_oldest"};
  return "capacity " + size_to_string(options.capacity) + ", queue_capacity " +
         size_to_string(options.queue_capacity) + ", on_full " +
         kNames[static_cast<std::size_t>(options.on_full)] + ", max_blocked " +
         size_to_string(options.max_blocked) + ", min_workers " +
         size_to_string(options.min_workers) + (options.prestart ? ", prestart" : "") +
         (options.grow.kind() == GrowPolicy::Kind::eager ? ", eager" : "") +
         (options.grow.kind() == GrowPolicy::Kind::load_factor
              ? ", up " + std::to_string(options.grow.factor().up) + " step " +
                    std::to_string(options.grow.factor().step)
              : "");
}

[[nodiscard]] inline std::string to_string(const Op& op) {
  constexpr std::array kActs{"submit", "try_submit",   "submit_past",    "submit_stopping",
                             "async",  "run",          "bulk",           "open",
                             "cancel", "stop",         "resize",         "pause",
                             "resume", "close(drain)", "close(discard)", "close(cancel)",
                             "reopen", "wait_idle",    "wait_idle_past", "wait_paused",
                             "join"};
  constexpr std::array kCourses{" at_once", " gated", " stoppable"};
  std::string text = '#' + std::to_string(op.id) + ' ' + kActs[static_cast<std::size_t>(op.act)];
  if (op.has_task()) text += kCourses[static_cast<std::size_t>(op.course)];
  if (op.has_task() && op.throws) text += " throws";
  if (op.act >= Act::open && op.act <= Act::stop) text += " #" + std::to_string(op.target);
  if (op.has_task() && op.options.are_set) {
    constexpr std::array kPriorities{" high", " normal", " low"};
    text += kPriorities[static_cast<std::size_t>(op.options.priority)];
    if (op.options.key != 0) text += " key " + std::to_string(op.options.key);
    if (op.options.weight > 1) text += " weight " + std::to_string(op.options.weight);
  }
  if (op.act == Act::resize || op.act == Act::bulk) text += ' ' + size_to_string(op.number);
  return text + (op.settles ? "" : " &");
}

[[nodiscard]] inline PoolOptions random_options(Random& random) {
  constexpr std::size_t kHuge = 5'000'000'000;  // Beyond 32 bits.
  constexpr std::array<std::size_t, 9> kCapacities{1, 1, 2, 2, 3, 4, 20, kHuge, kUnlimited};
  constexpr std::array<std::size_t, 9> kQueues{0, 0, 1, 2, 3, 10, 40, kHuge, kUnlimited};
  constexpr std::array<std::size_t, 4> kBlocked{1, 2, kUnlimited, kUnlimited};
  PoolOptions options{.capacity = kCapacities[random.below(kCapacities.size())],
                      .queue_capacity = kQueues[random.below(kQueues.size())],
                      .on_full = static_cast<OnFull>(random.below(4)),
                      .max_blocked = kBlocked[random.below(kBlocked.size())],
                      .idle_timeout = kNever};
  if (options.on_full == OnFull::reject) options.max_blocked = kUnlimited;
  options.min_workers = random.below(std::min<std::size_t>(options.capacity, 3) + 1);
  options.prestart = options.min_workers > 0 && random.one_in(2);
  if (options.on_full == OnFull::drop_oldest && options.queue_capacity == 0) {
    options.queue_capacity = 1;
  }
  if (options.capacity <= 20 && random.one_in(3)) options.grow = GrowPolicy::eager();
  return options;
}

// Returns random options with a limit on workers that follows the load. Time does not lower the
// limit.
[[nodiscard]] inline PoolOptions random_options_by_load(Random& random) {
  constexpr std::array kUps{0.5, 1.0, 1.5, 2.0, 4.0};
  PoolOptions options = random_options(random);
  const double up = kUps[random.below(kUps.size())];
  options.grow = GrowPolicy::load_factor(
      {.up = up, .down = up / 2, .step = 1 + random.below(3), .interval = std::chrono::hours(24)});
  return options;
}

[[nodiscard]] inline Act random_act(Random& random) {
  constexpr std::array<std::pair<Act, unsigned>, 21> kWeights{{
      {Act::submit, 24},         {Act::try_submit, 8},    {Act::submit_past, 4},
      {Act::submit_stopping, 6}, {Act::async, 8},         {Act::run, 6},
      {Act::open, 40},           {Act::cancel, 8},        {Act::stop, 4},
      {Act::resize, 6},          {Act::pause, 3},         {Act::resume, 5},
      {Act::close_drain, 1},     {Act::close_discard, 1}, {Act::close_cancel, 1},
      {Act::reopen, 5},          {Act::wait_idle, 2},     {Act::wait_idle_past, 1},
      {Act::wait_paused, 2},     {Act::join, 1},          {Act::bulk, 3},
  }};
  unsigned sum = 0;
  for (const auto& [act, weight] : kWeights) sum += weight;
  auto left = random.below(sum);
  for (const auto& [act, weight] : kWeights) {
    if (left < weight) return act;
    left -= weight;
  }
  return Act::submit;
}

[[nodiscard]] inline TaskOptions random_task_options(Random& random) {
  // Two of the keys are in one bucket of the pool's table, which has 64 buckets at first.
  constexpr std::array kKeys{1, 2, 60};
  TaskOptions options{.are_set = true};
  // Chooses mostly high priorities, so that lower levels are passed over until their turn comes.
  if (random.one_in(2))
    options.priority = static_cast<Priority>(random.below(3));
  else
    options.priority = Priority::high;
  if (random.one_in(3)) options.key = kKeys[random.below(kKeys.size())];
  if (random.one_in(4)) options.weight = 1 + random.below(4);
  return options;
}

// The kinds of tasks in a random run. If two tasks end at the same time, their order affects other
// tasks of their keys. So with options, each operation takes effect before the next one.
enum class Kind : std::uint8_t { plain_tasks, by_load, with_options };

// Returns operations, numbered from 1.
[[nodiscard]] inline std::vector<Op> random_ops(Random& random, int count, Kind kind) {
  std::vector<Op> ops;
  for (int id = 1; id <= count; ++id) {
    Op op{.act = random_act(random), .id = id};
    // Mostly selects a recent operation.
    const auto back = 1 + random.below(random.one_in(4) ? 100 : 12);
    op.target = std::max(1, id - static_cast<int>(back));
    // A stop has an effect on only one kind of operation.
    while (op.act == Act::stop && op.target > 1 &&
           ops[static_cast<std::size_t>(op.target - 1)].act != Act::submit_stopping) {
      --op.target;
    }
    op.number = random.one_in(20) ? kUnlimited : 1 + random.below(6);
    op.course = random.one_in(3)   ? Course::at_once
                : random.one_in(3) ? Course::stoppable
                                   : Course::gated;
    op.throws = random.one_in(5);
    op.settles = !random.one_in(4);
    if (kind == Kind::with_options) {
      op.settles = true;
      if (!random.one_in(3)) op.options = random_task_options(random);
    }
    if (op.act == Act::bulk) op.number = 1 + random.below(40);
    ops.push_back(op);
  }
  return ops;
}

// Appends operations that end all of `ops`.
inline void append_end(std::vector<Op>& ops) {
  const int last = ops.empty() ? 0 : ops.back().id;
  int id = last;
  for (int target = 1; target <= last; ++target) {
    ops.push_back({.act = Act::open, .id = ++id, .target = target});
  }
  for (const Act act : {Act::reopen, Act::resume, Act::wait_idle, Act::close_drain, Act::join}) {
    ops.push_back({.act = act, .id = ++id});
  }
}

}  // namespace weft::test
