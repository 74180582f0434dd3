// The cost of a process that has nothing to do.
#include <sys/resource.h>

#include <chrono>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;

std::chrono::microseconds processor_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

TEST_SUITE_BEGIN("scheduler/idle");

// The one place where time passes by on purpose: idleness can only be measured over a while.
THREAD_TEST_CASE_WITH("an idle process uses about no processor time", {.workers = {1, 8}}) {
  weft::Channel<int> channel;
  std::vector<weft::JoinHandle<void>> parked;
  for (int i = 0; i < 100; ++i) parked.push_back(weft::spawn([&] { (void)channel.receive(); }));
  // Work for all workers, so that each has run, searched and slept.
  runtime.run([] {
    for (int i = 0; i < 1000; ++i) weft::go([] {});
  });
  std::this_thread::sleep_for(300ms);
  std::chrono::microseconds spent{0};
  // The case is watched meanwhile: each look asks the kernel for the state of each worker.
  const auto bound = (20ms + 3ms * runtime.workers()) * weft::test::kSlowdown;
  // Another process may make ours pay now and then, and a worker may still be on its way to sleep:
  // some more tries.
  for (int attempt = 0; attempt < 10; ++attempt) {
    const auto before = processor_time();
    std::this_thread::sleep_for(1s);
    spent = processor_time() - before;
    if (spent < bound) break;
  }
  CHECK(spent < bound);
  channel.close();
  for (auto& fiber : parked) fiber.join();
}

TEST_SUITE_END();

}  // namespace
