// Helps tests to wait until other fibers are parked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <weft/metrics.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

namespace weft::test {

// Lets other fibers run until `count` are parked, for any reason. Call it from a fiber or a plain
// thread, in a process with only one runtime.
inline void await_parked(std::uint64_t count) {
  while (metrics::read().runtimes.at(0).parked_count < count) this_fiber::yield();
}

// Returns how many fibers are parked for `reason`, in the words of a dump.
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

// Lets other fibers run until `count` are parked for `reason`. Call it from a fiber or a plain
// thread. A fiber counts as parked slightly early, but only when it holds the lock of the list in
// which it waits. A later waiter comes after it in that list.
inline void await_parked(const Runtime& runtime, const std::string& reason, int count = 1) {
  while (parked_fibers(runtime, reason) < count) this_fiber::yield();
}

}  // namespace weft::test
