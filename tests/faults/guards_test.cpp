// Guards where the kernel has no lightweight ones: as on Linux before 6.13, and under filters of
// system calls.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/magazine.hpp"
#include "fibers/stack_space.hpp"
#include "tests/faults/faults.hpp"

TEST_SUITE_BEGIN("faults/guards");

namespace {

using weft::fibers::GuardKind;
using weft::fibers::Stack;
using weft::fibers::StackSpace;
using weft::test::arm;
using weft::test::Call;
using weft::test::disarm;

[[noreturn]] void never_started(weft::fibers::Arrival) { std::abort(); }

// Asks the kernel, which answers EFAULT where the processor would fault.
bool can_be_read(const char* address) {
  int ends[2] = {};
  REQUIRE(pipe(ends) == 0);
  const bool read = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return read;
}

TEST_CASE("without lightweight guards every stack is guarded by mprotect") {
  arm({Call::advise, EINVAL, 1'000'000}, 1);
  {
    StackSpace space(&never_started);
    CHECK(space.guard_kind() == GuardKind::protection);
    Stack* chain = space.take(weft::fibers::kDefaultSizeClass, 4);
    CHECK(chain != nullptr);
    for (Stack* stack = chain; stack != nullptr; stack = stack->next) {
      CHECK(can_be_read(stack->lowest));
      CHECK(!can_be_read(stack->lowest - 1));
    }
  }
  CHECK(disarm());
}

TEST_CASE("a stack without a guard is not used") {
  StackSpace space(&never_started);
  Stack* first = space.take(weft::fibers::kDefaultSizeClass, 1);
  CHECK(first != nullptr);
  // One at a time, so that neither many ranges are advised at once nor pages asked for.
  arm({Call::protect, ENOMEM, 1'000'000}, 1);
  const bool lightweight = space.guard_kind() == GuardKind::lightweight;
  Stack* second = space.take(weft::fibers::kDefaultSizeClass, 1);
  (void)disarm();
  CHECK((second != nullptr) == lightweight);
  if (second != nullptr) CHECK(!can_be_read(second->lowest - 1));
}

TEST_CASE("a stack whose guard could not be set is used after a later attempt sets the guard") {
  arm({Call::advise, EINVAL, 1'000'000}, 1);
  StackSpace space(&never_started);
  CHECK(disarm());
  // The first one makes memory usable, the others are guards.
  arm({Call::protect, ENOMEM, 1'000'000}, 4);
  Stack* two = space.take(weft::fibers::kDefaultSizeClass, 4);
  CHECK(disarm());
  CHECK(weft::base::chain_length(two) == 2);
  CHECK(space.counts().carved == 2);
  CHECK(space.counts().cold == 0);
  Stack* second = two->next;
  space.cool(two);
  // Stacks that are guarded already come first.
  Stack* six = space.take(weft::fibers::kDefaultSizeClass, 6);
  CHECK(weft::base::chain_length(six) == 6);
  CHECK(six == second);
  CHECK(six->next == two);
  CHECK(space.counts().carved == 6);
  CHECK(space.counts().cold == 0);
  for (Stack* stack = six; stack != nullptr; stack = stack->next) {
    CHECK(can_be_read(stack->lowest));
    CHECK(!can_be_read(stack->lowest - 1));
  }
}

TEST_CASE("fewer stacks are made at once when memory is short") {
  constexpr unsigned kLargest = weft::fibers::kStackSizes - 1;
  StackSpace space(&never_started);
  if (space.guard_kind() != GuardKind::lightweight) {
    MESSAGE("skipped: guards are protected here, and the fault would hit one");
    return;
  }
  // Four at a time become usable, then a quarter of what there is.
  for (int i = 0; i < 20; ++i) CHECK(space.take(kLargest, 1) != nullptr);
  arm({Call::protect, ENOMEM}, 1);
  for (int i = 0; i < 5; ++i) CHECK(space.take(kLargest, 1) != nullptr);
  CHECK(disarm());
}

}  // namespace

TEST_SUITE_END();
