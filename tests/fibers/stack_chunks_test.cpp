// Tests the chunks in which a StackSpace reserves addresses.
#include <doctest/doctest.h>

#include <cstddef>
#include <fstream>
#include <vector>

#include "fibers/stack_space.hpp"
#include "tests/fibers/stack_tools.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using weft::fibers::Stack;
using weft::fibers::StackSpace;
using weft::test::Coroutine;

TEST_SUITE_BEGIN("fibers/stack_chunks");

std::size_t reserved_pages() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

TEST_CASE("address space is reserved in steps, and a stack is found from any address inside it") {
  constexpr unsigned kSize = weft::fibers::kStackSizes - 1;
  const std::size_t before = reserved_pages();
  StackSpace space(&Coroutine::entry);
  std::vector<Stack*> stacks{space.take(kSize, 1)};
  if (!weft::test::kSanitized) CHECK((reserved_pages() - before) * 4096 <= std::size_t{1} << 30);
  const std::size_t first =
      static_cast<std::size_t>(std::size_t{1} << 30) / weft::fibers::stack_bytes(kSize);
  while (stacks.size() < 4 * first) {
    Stack* stack = space.take(kSize, 1);
    REQUIRE(stack != nullptr);
    stacks.push_back(stack);
  }
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const Stack& stack = *stacks[i];
    REQUIRE(stack.index == i);
    REQUIRE(space.find_top(stack.lowest) > reinterpret_cast<const char*>(&stack));
    REQUIRE(space.find_top(&stack) == space.find_top(stack.lowest));
    REQUIRE(space.find_top(stack.lowest - 1) == nullptr);
    std::size_t size = 0;
    REQUIRE(space.find_overflowed(stack.lowest - 1, size) == &stack);
    REQUIRE(size == weft::fibers::stack_bytes(kSize));
  }
  Stack* chain = nullptr;
  for (Stack* stack : stacks) {
    stack->next = chain;
    chain = stack;
  }
  space.cool(chain);
  CHECK(space.counts().cold == stacks.size());
}

TEST_SUITE_END();

}  // namespace
