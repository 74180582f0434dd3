#include "fibers/stack_space.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/magazine.hpp"
#include "tests/fibers/stack_tools.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::fibers::GuardKind;
using weft::fibers::kStackSizes;
using weft::fibers::size_class_of;
using weft::fibers::Stack;
using weft::fibers::stack_bytes;
using weft::fibers::StackSpace;
using weft::test::Coroutine;

std::size_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
}

// The signal by which a child dies that touches the byte; 0 when it lives.
int signal_of_touching(char* byte) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    *static_cast<volatile char*>(byte) = 1;
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

std::vector<Stack*> unchain(Stack* chain) {
  std::vector<Stack*> stacks;
  for (; chain != nullptr; chain = chain->next) stacks.push_back(chain);
  return stacks;
}

bool resident(char* page) {
  unsigned char state = 0;
  return mincore(page, 1, &state) == 0 && (state & 1) != 0;
}

TEST_SUITE_BEGIN("fibers/stack_space");

TEST_CASE("sizes are 16 KiB times a power of two, and a demand is rounded up") {
  CHECK(stack_bytes(0) == 16 << 10);
  CHECK(stack_bytes(kStackSizes - 1) == 16 << 20);
  CHECK(size_class_of(0) == 0);
  CHECK(size_class_of(1) == 0);
  CHECK(size_class_of(16 << 10) == 0);
  CHECK(size_class_of((16 << 10) + 1) == 1);
  CHECK(size_class_of(64 << 10) == 2);
  CHECK(size_class_of(16 << 20) == kStackSizes - 1);
  CHECK(size_class_of((16 << 20) + 1) == kStackSizes);
  CHECK(size_class_of(~std::size_t{0}) == kStackSizes);
}

TEST_CASE("a stack is usable from its lowest byte to its header") {
  StackSpace space(&Coroutine::entry);
  for (unsigned size_class = 0; size_class < kStackSizes; ++size_class) {
    Stack* stack = space.take(size_class, 1);
    REQUIRE(stack != nullptr);
    CHECK(stack->next == nullptr);
    CHECK(stack->size_class == size_class);
    char* lowest = stack->lowest;
    auto* header = reinterpret_cast<char*>(stack);
    const auto usable = static_cast<std::size_t>(header - lowest);
    CHECK(usable < stack_bytes(size_class));
    CHECK(usable > stack_bytes(size_class) - 2048);
    std::memset(lowest, 0x5a, usable - 256);  // The initial context stands at the top.
    space.cool(stack);
  }
}

TEST_CASE("a touch below a stack of any size is deadly, one at its end is not") {
  StackSpace space(&Coroutine::entry);
  for (unsigned size_class = 0; size_class < kStackSizes; ++size_class) {
    for (Stack* stack : unchain(space.take(size_class, 2))) {
      char* lowest = stack->lowest;
      CHECK(signal_of_touching(lowest) == 0);
      CHECK(signal_of_touching(lowest - 1) == SIGSEGV);
      CHECK(signal_of_touching(lowest - 4096) == SIGSEGV);
    }
  }
}

TEST_CASE("a guard stays when the stack is cooled and taken again") {
  StackSpace space(&Coroutine::entry);
  for (int round = 0; round < 3; ++round) {
    Stack* stack = space.take(2, 1);
    REQUIRE(stack != nullptr);
    CHECK(signal_of_touching(stack->lowest - 1) == SIGSEGV);
    space.cool(stack);
  }
  CHECK(space.counts().carved == 1);
}

TEST_CASE("cold stacks are taken before new ones are carved, and are zero again") {
  StackSpace space(&Coroutine::entry);
  Stack* chain = space.take(2, 20);
  const std::vector<Stack*> stacks = unchain(chain);
  REQUIRE(stacks.size() == 20);
  for (Stack* stack : stacks) {
    std::memset(stack->lowest, 0x5a, stack_bytes(2) - 2048);
  }
  space.cool(chain);
  CHECK(space.counts().carved == 20);
  CHECK(space.counts().cold == 20);
  for (Stack* stack : stacks) CHECK(!resident(stack->lowest));
  const std::vector<Stack*> again = unchain(space.take(2, 20));
  CHECK(space.counts().carved == 20);
  CHECK(space.counts().cold == 0);
  CHECK(std::set<Stack*>(again.begin(), again.end()) ==
        std::set<Stack*>(stacks.begin(), stacks.end()));
  for (Stack* stack : again) {
    const char* lowest = stack->lowest;
    CHECK(std::all_of(lowest, lowest + stack_bytes(2) - 2048, [](char c) { return c == 0; }));
    CHECK(stack->fiber == nullptr);
    CHECK(stack->fiber_id.load(weft::detail::relaxed) == 0);
    CHECK(stack->name.view().empty());
  }
}

TEST_CASE("stacks do not overlap, and each guard leads to its own stack") {
  StackSpace space(&Coroutine::entry);
  std::size_t size = 0;
  CHECK(space.find_overflowed(&space, size) == nullptr);
  CHECK(space.find_overflowed(nullptr, size) == nullptr);
  std::vector<Stack*> stacks;
  for (unsigned size_class = 0; size_class < 6; ++size_class) {
    for (Stack* stack : unchain(space.take(size_class, 9))) stacks.push_back(stack);
  }
  weft::test::Random random(1);
  for (Stack* stack : stacks) {
    char* lowest = stack->lowest;
    for (Stack* other : stacks) {
      if (other == stack) continue;
      char* others = other->lowest;
      CHECK((others + stack_bytes(other->size_class) <= lowest ||
             lowest + stack_bytes(stack->size_class) <= others));
    }
    for (int i = 0; i < 20; ++i) {
      char* inside = lowest + random.below(stack_bytes(stack->size_class));
      CHECK(space.find_overflowed(inside, size) == nullptr);
    }
    char* guard = lowest - 1 - random.below(4096);
    CHECK(space.find_overflowed(guard, size) == stack);
    CHECK(size == stack_bytes(stack->size_class));
    char* far_above = lowest + (std::size_t{1} << 31);  // Reserved, but no stack yet.
    CHECK(space.find_overflowed(far_above, size) == nullptr);
  }
}

TEST_CASE("ten thousand stacks with guards take a handful of mappings") {
  StackSpace space(&Coroutine::entry);
  const bool lightweight = space.guard_kind() == GuardKind::lightweight;
  const std::size_t before = count_mappings();
  const unsigned count = weft::test::kSanitized ? 1000 : 10'000;
  std::size_t taken = 0;
  while (taken < count) {
    Stack* chain = space.take(2, 100);
    REQUIRE(chain != nullptr);
    taken += weft::base::chain_length(chain);
  }
  const std::size_t more = count_mappings() - before;
  if (lightweight) {
    // A sanitizer maps memory of its own meanwhile, but not some for every stack.
    CHECK(more <= (weft::test::kSanitized ? count / 4 : 8));
  } else {
    CHECK(more <= 2 * count + 8);
  }
}

TEST_CASE("a random history of taking and cooling hands no stack out twice") {
  StackSpace space(&Coroutine::entry);
  weft::test::Random random(2);
  std::set<Stack*> held;
  for (int step = 0; step < 2'000; ++step) {
    const auto size_class = static_cast<unsigned>(random.below(4));
    if (random.one_in(2)) {
      const auto count = static_cast<unsigned>(1 + random.below(5));
      const std::vector<Stack*> taken = unchain(space.take(size_class, count));
      REQUIRE(taken.size() == count);
      for (Stack* stack : taken) REQUIRE(held.insert(stack).second);
    } else {
      Stack* chain = nullptr;
      for (std::uint64_t i = random.below(6); i > 0 && !held.empty(); --i) {
        auto any = held.begin();
        std::advance(any, random.below(std::min<std::size_t>(held.size(), 8)));
        (*any)->next = chain;
        chain = *any;
        held.erase(any);
      }
      if (chain != nullptr) space.cool(chain);
    }
    const StackSpace::Counts counts = space.counts();
    REQUIRE(counts.carved - counts.cold == held.size());
  }
}

// Address space may be limited from outside; a child, since the limit cannot be lifted again.
TEST_CASE("with little address space there are fewer stacks, not a crash") {
  if (weft::test::kSanitized) return;  // A sanitizer's own address space exceeds any limit.
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{rlim_t{1} << 30, rlim_t{1} << 30};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(1);
    StackSpace space(&Coroutine::entry);
    unsigned taken = 0;
    while (Stack* stack = space.take(10, 1)) {
      std::memset(stack->lowest, 1, 4096);
      if (++taken > 100) _exit(2);
    }
    _exit(taken > 0 ? 0 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_SUITE_END();

}  // namespace
