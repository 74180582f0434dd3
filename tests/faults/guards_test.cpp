// Tests guards on kernels without lightweight guards, as before Linux 6.13, and under system call
// filters.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/magazine.hpp"
#include "fibers/stack_space.hpp"
#include "tests/faults/faults.hpp"
#include "tests/support/skip.hpp"

TEST_SUITE_BEGIN("faults/guards");

namespace {

using weft::fibers::GuardKind;
using weft::fibers::Stack;
using weft::fibers::StackSpace;
using weft::test::arm;
using weft::test::Call;
using weft::test::disarm;

[[noreturn]] void never_started(weft::fibers::Arrival) { std::abort(); }

// Asks the kernel, which returns EFAULT where the processor would fault.
bool can_be_read(const char* address) {
  int ends[2] = {};
  REQUIRE(pipe(ends) == 0);
  const bool read = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return read;
}

TEST_CASE("every stack is guarded by mprotect when the kernel refuses lightweight guards") {
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

TEST_CASE("a stack whose guard cannot be set is not handed out") {
  StackSpace space(&never_started);
  Stack* first = space.take(weft::fibers::kDefaultSizeClass, 1);
  CHECK(first != nullptr);
  // Takes one stack at a time, so that the space neither advises many ranges at once nor requests
  // pages.
  arm({Call::protect, ENOMEM, 1'000'000}, 1);
  const bool lightweight = space.guard_kind() == GuardKind::lightweight;
  Stack* second = space.take(weft::fibers::kDefaultSizeClass, 1);
  (void)disarm();
  CHECK((second != nullptr) == lightweight);
  if (second != nullptr) CHECK(!can_be_read(second->lowest - 1));
}

TEST_CASE(
    "a stack whose guard could not be set is handed out after a later attempt has set the guard") {
  arm({Call::advise, EINVAL, 1'000'000}, 1);
  StackSpace space(&never_started);
  CHECK(disarm());
  // The first call makes memory usable; the later calls make guards.
  arm({Call::protect, ENOMEM, 1'000'000}, 4);
  Stack* two = space.take(weft::fibers::kDefaultSizeClass, 4);
  CHECK(disarm());
  CHECK(weft::base::chain_length(two) == 2);
  CHECK(space.counts().carved == 2);
  CHECK(space.counts().cold == 0);
  Stack* second = two->next;
  space.cool(two);
  // The space first returns stacks that are already guarded.
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

TEST_CASE("a smaller batch of stacks is made when the kernel has no memory for a larger batch") {
  constexpr unsigned kLargest = weft::fibers::kStackSizes - 1;
  StackSpace space(&never_started);
  if (space.guard_kind() != GuardKind::lightweight) {
    return weft::test::skip("guards are protected here, and the fault would hit one");
  }
  // Four stacks at a time become usable, later a quarter of the existing number.
  for (int i = 0; i < 20; ++i) CHECK(space.take(kLargest, 1) != nullptr);
  arm({Call::protect, ENOMEM}, 1);
  for (int i = 0; i < 5; ++i) CHECK(space.take(kLargest, 1) != nullptr);
  CHECK(disarm());
}

}  // namespace

TEST_SUITE_END();
