// Tests the page tables of unused stacks.
#include <doctest/doctest.h>

#include <csignal>
#include <cstddef>
#include <fstream>
#include <set>
#include <string>

#include "fibers/stack_space.hpp"
#include "tests/fibers/stack_tools.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace {

using weft::fibers::kGuardBytes;
using weft::fibers::Stack;
using weft::fibers::StackSpace;
using weft::test::Coroutine;
using weft::test::signal_of_touching;
using weft::test::take_stacks;

constexpr std::size_t kStacks = 4096;
constexpr std::size_t kKept = 256;

TEST_SUITE_BEGIN("fibers/stack_tables");

std::size_t kilobytes_of_page_tables() {
  std::ifstream status("/proc/self/status");
  for (std::string label; status >> label;) {
    std::size_t kilobytes = 0;
    if (label == "VmPTE:" && status >> kilobytes) return kilobytes;
  }
  return 0;
}

TEST_CASE(
    "page tables of unused stacks are freed, and a stack that is taken again still has its guard") {
  StackSpace space(&Coroutine::entry, kKept);
  const std::size_t before = kilobytes_of_page_tables();
  space.cool(take_stacks(space, kStacks));
  const std::size_t used = kilobytes_of_page_tables() - before;
  if (!space.has_spare_tables_hint()) {
    return weft::test::skip("this kernel does not free page tables");
  }
  while (space.give_tables_back()) {
  }
  CHECK(!space.has_spare_tables_hint());
  CHECK(space.counts().cold == kKept);
  const bool is_seen = !weft::test::kSanitized && !weft::test::kEmulated;  // Otherwise more tables.
  if (is_seen) CHECK(kilobytes_of_page_tables() - before < used / 4);
  Stack* const again = take_stacks(space, kStacks);
  CHECK(space.counts().cold == 0);
  CHECK(space.counts().carved == kStacks);
  std::set<const Stack*> stacks;
  for (Stack* stack = again; stack != nullptr; stack = stack->next) {
    stacks.insert(stack);
    if (stack->index % 1000 != 0) continue;
    CHECK(signal_of_touching(stack->lowest) == 0);
    CHECK(signal_of_touching(stack->lowest - 1) == SIGSEGV);
    CHECK(signal_of_touching(stack->lowest - kGuardBytes) == SIGSEGV);
  }
  CHECK(stacks.size() == kStacks);
  space.cool(again);
}

TEST_SUITE_END();

}  // namespace
