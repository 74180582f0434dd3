// Tests which parts of stacks a core file contains.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "fibers/fiber.hpp"
#include "fibers/stack_space.hpp"
#include "tests/fibers/stack_tools.hpp"
#include "tests/support/core_files.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using weft::fibers::Fiber;
using weft::fibers::FiberState;
using weft::fibers::kGuardBytes;
using weft::fibers::Stack;
using weft::fibers::StackSpace;
using weft::test::bytes_in_core;
using weft::test::Coroutine;
using weft::test::shows_flags_of_mappings;
using weft::test::take_stacks;

constexpr std::size_t kBlock = weft::fibers::ColdStacks::kBlock;
constexpr std::size_t kTaken = 8 * kBlock;

TEST_SUITE_BEGIN("fibers/stack_cores");

TEST_CASE("core files contain a block of stacks only while a stack of the block is in use") {
  if (!shows_flags_of_mappings()) return;
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
  // The range includes the rest of the last block, and some stacks that were never taken.
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

TEST_CASE(
    "core files omit the unused parts of stacks until the limit on memory mappings is reached") {
  if (!shows_flags_of_mappings()) return;
  constexpr std::size_t kParked = 32;  // The number of stacks that one take() returns.
  constexpr std::size_t kCut = 7;
  StackSpace space(&Coroutine::entry);
  Stack* const all = take_stacks(space, kParked);
  std::array<Fiber, kParked> fibers;
  std::size_t next = 0;
  for (Stack* stack = all; stack != nullptr; stack = stack->next) {
    Fiber& fiber = fibers.at(next++);
    fiber.state.store(FiberState::parked, weft::detail::relaxed);
    fiber.stack.store(stack, weft::detail::relaxed);
    stack->fiber = &fiber;
    stack->context.store(
        reinterpret_cast<weft::fibers::Context>(reinterpret_cast<char*>(stack) - 512),
        weft::detail::relaxed);
  }
  const bool has_guards = space.guard_kind() == weft::fibers::GuardKind::lightweight;
  const std::size_t allowed = has_guards ? 2 * kCut + 1 : kCut;
  CHECK(space.leave_unused_parts_out_of_core(nullptr, allowed) == 0);
  std::size_t cut = 0;
  for (Stack* stack = all; stack != nullptr; stack = stack->next) {
    if (bytes_in_core(stack->lowest, stack->lowest + 4096) == 0) ++cut;
    CHECK(bytes_in_core(reinterpret_cast<char*>(stack) - 512, reinterpret_cast<char*>(stack)) ==
          512);
    stack->fiber = nullptr;
  }
  CHECK(cut == kCut);
  space.cool(all);
}

TEST_SUITE_END();

}  // namespace
