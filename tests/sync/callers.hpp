// Callers of the tests in this folder: fibers and plain threads, and what they wait for.
#pragma once

#include <sstream>
#include <string>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

namespace weft::test {

// Runs `body(number)` in so many fibers and so many plain threads, and waits for all.
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

// How many fibers are parked for `reason`, in the words of a dump.
[[nodiscard]] inline int parked_fibers(const Runtime& runtime, const std::string& reason) {
  std::ostringstream dump;
  runtime.dump(dump);
  const std::string text = dump.str();
  const std::string wanted = "parked: " + reason;
  int count = 0;
  for (std::size_t at = text.find(wanted); at != std::string::npos;
       at = text.find(wanted, at + 1)) {
    ++count;
  }
  return count;
}

// Lets others run until so many fibers are parked for `reason`. From a fiber or a plain thread.
// A fiber is seen as parked a little early, but not before it holds the lock of the row it waits
// in: who comes to that row afterwards stands behind it.
inline void await_parked(const Runtime& runtime, const std::string& reason, int count) {
  while (parked_fibers(runtime, reason) < count) this_fiber::yield();
}

}  // namespace weft::test
