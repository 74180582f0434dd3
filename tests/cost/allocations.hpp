// Counts allocations: pool_test.cpp replaces this program's operator new by one that counts.
#pragma once

#include <cstdint>

namespace weft::test {

// The allocations of this thread: the thread that watches the test also makes some.
extern thread_local std::uint64_t allocations;

// Returns how many allocations `use` makes, after one call to warm up.
template <class Use>
std::uint64_t allocations_of(Use use) {
  use();
  const std::uint64_t before = allocations;
  use();
  return allocations - before;
}

}  // namespace weft::test
