// Does the model add up? Cases in which the right answer is known without it.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <weft/runtime.hpp>

#include "bench/model/loads.hpp"
#include "bench/model/world.hpp"

namespace weft::bench::model {

namespace {

// Only what a case names takes time.
struct Run {
  Time elapsed = 0;
  Measurements sums;
};

Run simulate(const std::string& name, const LoadOptions& options, const Costs& costs,
             const Policy& policy = {}) {
  RuntimeOptions runtime;
  runtime.workers = 1;
  return run(runtime, [&] {
    const auto load = make_load(name, options);
    World world(options.workers, costs, policy, *load, options.seed);
    world.run();
    return Run{world.clock.now(), world.sums};
  });
}

// Costs at which nothing but sleeping, waking and searching goes by unnoticed.
Costs costs_of_idling() {
  Costs costs;
  costs.pause = 200 * kNanosecond;
  costs.wake_call = 2 * kMicrosecond;
  costs.wake_latency = 3 * kMicrosecond;
  costs.sleep = kMicrosecond;
  return costs;
}

}  // namespace

TEST_CASE("on one worker, n no-ops take n times what one takes") {
  Costs costs;
  costs.spawn = 9 * kNanosecond;
  costs.run_new = 25 * kNanosecond;
  const Run few = simulate("batches", {.size = 100, .rounds = 1}, costs);
  const Run many = simulate("batches", {.size = 200, .rounds = 1}, costs);
  CHECK(many.elapsed - few.elapsed == 100 * (costs.spawn + costs.run_new));
  CHECK(many.sums.spawned == 200);
}

TEST_CASE("a run is the same whenever it is made") {
  const LoadOptions options{.size = 12, .work = kMicrosecond, .workers = 16, .seed = 7};
  const Run first = simulate("fib", options, costs_of_idling());
  const Run second = simulate("fib", options, costs_of_idling());
  CHECK(first.elapsed == second.elapsed);
  CHECK(first.sums.looks == second.sums.looks);
}

TEST_CASE("no fiber runs twice, and none is forgotten") {
  for (const unsigned workers : {1U, 2U, 7U, 64U, 256U}) {
    CAPTURE(workers);
    const LoadOptions options{.size = 1'000, .rounds = 3, .work = kMicrosecond, .workers = workers};
    const Run run = simulate("batches", options, costs_of_idling());
    CHECK(run.sums.spawned == 3'000);
    // Each once, and the spawner once at first and at most once after each batch.
    CHECK(run.sums.runs >= 3'001);
    CHECK(run.sums.runs <= 3'004);
    const Time work = run.sums.used[static_cast<unsigned>(Use::work)];
    CHECK(work == 3'000 * kMicrosecond);
    CHECK(run.elapsed >= work / workers);
  }
}

TEST_CASE("two workers that have enough to do need little more than half the time") {
  const LoadOptions options{.size = 2'000, .rounds = 1, .work = 10 * kMicrosecond, .workers = 2};
  const Run run = simulate("batches", options, costs_of_idling());
  CHECK(run.elapsed < 11 * kMillisecond);
  CHECK(run.elapsed >= 10 * kMillisecond);
}

TEST_CASE("idle workers sleep") {
  // 20 fibers of 20 us in a second: the rest of the time nobody does anything.
  const LoadOptions options{.size = 1,
                            .rounds = 10,
                            .work = 20 * kMicrosecond,
                            .duration = 1'000 * kMillisecond,
                            .workers = 8};
  const Run run = simulate("bursts", options, costs_of_idling());
  const Time searched = run.sums.used[static_cast<unsigned>(Use::search)];
  CHECK(searched < 10 * kMillisecond);
  CHECK(run.sums.response.total() == 10);
}

TEST_CASE("a server of one worker answers as fast as it computes, and when busy more slowly") {
  LoadOptions options{.work = 10 * kMicrosecond, .duration = 50 * kMillisecond, .percent = 1};
  const Run calm = simulate("server", options, costs_of_idling());
  CHECK(calm.sums.response.at(0.5) < 16 * kMicrosecond);  // 3 of them to wake up.
  CHECK(calm.sums.response.at(0.5) >= 10 * kMicrosecond);
  options.percent = 90;
  const Run busy = simulate("server", options, costs_of_idling());
  CHECK(busy.sums.response.at(0.5) > 20 * kMicrosecond);
}

TEST_CASE("requests for a line that many change are served one after the other") {
  Memory memory({.near = 80, .far = 200, .cores_per_socket = 4, .copied = 10});
  Line line;
  CHECK(memory.write(line, 0, 0) == 0);  // Nobody had it.
  CHECK(memory.write(line, 0, 5) == 0);  // Its own.
  CHECK(memory.write(line, 1, 10) == 80);
  CHECK(memory.write(line, 2, 10) == 160);
  CHECK(memory.write(line, 4, 1'000) == 200);  // From the other socket.
  CHECK(memory.read(line, 5, 2'000) == 80);
  CHECK(memory.read(line, 6, 2'000) == 160);  // After what has changed it has come,
  CHECK(memory.read(line, 7, 2'000) == 170);  // copies are handed out faster.
  CHECK(memory.read(line, 7, 9'000) == 0);
  CHECK(memory.write(line, 0, 9'000) == 200);  // From the other socket.
  CHECK(memory.transfers() == 7);
}

}  // namespace weft::bench::model
