// Counts allocations: pool_test.cpp replaces this program's operator new by one that counts.
#pragma once

#include <cstdint>

namespace weft::test {

// Counts the allocations of this thread alone, because the thread that watches the test also
// allocates.
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
