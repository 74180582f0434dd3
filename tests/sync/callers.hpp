// Provides callers for the tests in this folder: fibers and plain threads.
#pragma once

#include <thread>
#include <vector>
#include <weft/go.hpp>

#include "tests/support/parked.hpp"

namespace weft::test {

// Runs `body(number)` in `fiber_count` fibers and `thread_count` plain threads, and waits for all.
template <class Body>
void run_mixed(int fiber_count, int thread_count, Body body) {
  std::vector<JoinHandle<void>> fibers;
  std::vector<std::thread> threads;
  for (int i = 0; i < fiber_count; ++i) {
    fibers.push_back(spawn([body, i] { body(i); }));
  }
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([body, i, fiber_count] { body(fiber_count + i); });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& fiber : fibers) fiber.join();
}

}  // namespace weft::test
