// Tests the cost of an idle process.
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

// This case waits in real time on purpose, because idleness can only be measured over a while.
THREAD_TEST_CASE_WITH("a process whose fibers are all parked uses almost no processor time",
                      {.workers = {1, 8}}) {
  weft::Channel<int> channel;
  std::vector<weft::JoinHandle<void>> parked;
  for (int i = 0; i < 100; ++i) parked.push_back(weft::spawn([&] { (void)channel.receive(); }));
  // Gives all workers work, so that each has run, searched and slept.
  runtime.run([] {
    for (int i = 0; i < 1000; ++i) weft::go([] {});
  });
  std::this_thread::sleep_for(300ms);
  std::chrono::microseconds spent{0};
  // The watchdog runs meanwhile: each of its looks reads the state of each worker from the kernel.
  const auto bound = (20ms + 3ms * runtime.workers()) * weft::test::kSlowdown;
  // Another process may add to the measured time, and a worker may not sleep yet, so the case
  // retries.
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
