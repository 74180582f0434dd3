// Guards where the kernel has no lightweight ones: as on Linux before 6.13, and under filters of
// system calls.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

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

TEST_CASE("without lightweight guards every stack is guarded by its protection") {
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

TEST_CASE("a stack without a guard is not handed out") {
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

}  // namespace

TEST_SUITE_END();
