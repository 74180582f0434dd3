// What core files have of stacks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "fibers/stack_space.hpp"
#include "tests/fibers/stack_tools.hpp"
#include "tests/support/core_files.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using weft::fibers::kGuardBytes;
using weft::fibers::Stack;
using weft::fibers::StackSpace;
using weft::test::bytes_in_core;
using weft::test::Coroutine;
using weft::test::take_stacks;

constexpr std::size_t kBlock = weft::fibers::ColdStacks::kBlock;
constexpr std::size_t kTaken = 8 * kBlock;

TEST_SUITE_BEGIN("fibers/stack_cores");

TEST_CASE("core files have the stacks in use, and leave free and unused ones out") {
  if (weft::test::kEmulated) {
    MESSAGE("left out: the emulator shows no flags of mappings");
    return;
  }
  StackSpace space(&Coroutine::entry, kBlock);
  Stack* all = take_stacks(space, kTaken);
  const char* lowest = all->lowest;
  const char* highest = all->lowest;
  for (const Stack* stack = all; stack != nullptr; stack = stack->next) {
    lowest = std::min<const char*>(lowest, stack->lowest);
    highest = std::max<const char*>(highest, stack->lowest);
  }
  const std::size_t stride = static_cast<std::size_t>(highest - lowest) / (kTaken - 1);
  const bool has_guards = space.guard_kind() == weft::fibers::GuardKind::lightweight;
  const std::size_t in_core = has_guards ? stride : stride - kGuardBytes;
  const char* const first = lowest - kGuardBytes;
  // The rest of the last block, and some stacks that have never been taken.
  const char* const last = first + (kTaken + 2 * kBlock) * stride;
  CHECK(bytes_in_core(first, last) == kTaken * in_core);

  Stack* const one = std::exchange(all, all->next);
  space.cool(all);
  CHECK(space.has_cold_blocks_hint());
  while (space.leave_out_of_cores()) {
  }
  CHECK(!space.has_cold_blocks_hint());
  CHECK(bytes_in_core(first, last) == kBlock * in_core);
  while (space.give_tables_back()) {
  }

  Stack* const more = space.take(0, 1);
  CHECK(bytes_in_core(one->lowest, one->lowest + 4096) == 4096);
  CHECK(bytes_in_core(more->lowest, more->lowest + 4096) == 4096);
  one->next = more;
  more->next = nullptr;
  space.cool(one);
}

TEST_SUITE_END();

}  // namespace
