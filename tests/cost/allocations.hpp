// How much memory is asked for: pool_test.cpp replaces this program's operator new by one that
// counts.
#pragma once

#include <cstdint>

namespace weft::test {

// By this thread: the one that watches the case takes some, too.
extern thread_local std::uint64_t allocations;

// How often memory is taken for what `use` does, done once before to warm up.
template <class Use>
std::uint64_t allocations_of(Use use) {
  use();
  const std::uint64_t before = allocations;
  use();
  return allocations - before;
}

}  // namespace weft::test
