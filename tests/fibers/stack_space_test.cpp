#include "fibers/stack_space.hpp"

#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/magazine.hpp"
#include "base/memory_limits.hpp"
#include "tests/fibers/stack_tools.hpp"
#include "tests/support/child.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

constexpr const char* kSanitizerSpace = "a sanitizer's own address space exceeds any limit";

using weft::fibers::GuardKind;
using weft::fibers::kGuardBytes;
using weft::fibers::kInlineBytes;
using weft::fibers::kStackSizes;
using weft::fibers::size_class_of;
using weft::fibers::Stack;
using weft::fibers::stack_bytes;
using weft::fibers::StackSpace;
using weft::test::check_child;
using weft::test::Coroutine;
using weft::test::signal_of_touching;
using weft::test::status_of_child;

std::size_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
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

TEST_CASE("stack sizes are 16 KiB times a power of two, and requests are rounded up") {
  CHECK(stack_bytes(0) == 16 << 10);
  CHECK(stack_bytes(kStackSizes - 1) == weft::fibers::kLargestStack);
  CHECK(weft::fibers::kLargestStack == 16 << 20);
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
    // The size plus the part that the parent of an inlined child may use above it, less its offset
    // and header.
    CHECK(usable < stack_bytes(size_class) + kInlineBytes);
    CHECK(usable > stack_bytes(size_class) + kInlineBytes - 2048);
    std::memset(lowest, 0x5a, usable - 256);  // The initial context is at the top.
    space.cool(stack);
  }
}

TEST_CASE("an access just below a stack is fatal, but an access to its lowest byte is not") {
  StackSpace space(&Coroutine::entry);
  for (unsigned size_class = 0; size_class < kStackSizes; ++size_class) {
    for (Stack* stack : unchain(space.take(size_class, 2))) {
      char* lowest = stack->lowest;
      CHECK(signal_of_touching(lowest) == 0);
      CHECK(signal_of_touching(lowest - 1) == SIGSEGV);
      CHECK(signal_of_touching(lowest - 4096) == SIGSEGV);
      // A guard is about as large as a frame, so one access does not reach the next stack.
      CHECK(signal_of_touching(lowest - kGuardBytes) == SIGSEGV);
    }
  }
}

TEST_CASE("a stack's guard stays in place when the stack is released and reused") {
  StackSpace space(&Coroutine::entry);
  for (int round = 0; round < 3; ++round) {
    Stack* stack = space.take(2, 1);
    REQUIRE(stack != nullptr);
    CHECK(signal_of_touching(stack->lowest - 1) == SIGSEGV);
    space.cool(stack);
  }
  CHECK(space.counts().carved == 1);
}

TEST_CASE("released stacks are reused before new stacks are made, and contain zeros again") {
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

TEST_CASE("a chain with more stacks than one system call accepts is released") {
  StackSpace space(&Coroutine::entry);
  Stack* chain = nullptr;
  for (int i = 0; i < 40; ++i) {
    Stack* stack = space.take(0, 1);
    stack->next = chain;
    chain = stack;
  }
  const std::vector<Stack*> stacks = unchain(chain);
  for (Stack* stack : stacks) *stack->lowest = 1;
  space.cool(chain);
  CHECK(space.counts().cold == stacks.size());
  for (Stack* stack : stacks) CHECK(!resident(stack->lowest));
}

TEST_CASE("stacks do not overlap, and the guard of each stack identifies the stack") {
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
      CHECK((others + stack_bytes(other->size_class) + kInlineBytes + kGuardBytes <= lowest ||
             lowest + stack_bytes(stack->size_class) + kInlineBytes + kGuardBytes <= others));
    }
    for (int i = 0; i < 20; ++i) {
      char* inside = lowest + random.below(stack_bytes(stack->size_class));
      CHECK(space.find_overflowed(inside, size) == nullptr);
    }
    CHECK(space.find_overflowed(lowest, size) == nullptr);
    for (const std::size_t below :
         {std::size_t{1}, kGuardBytes, 1 + std::size_t{random.below(kGuardBytes)}}) {
      CHECK(space.find_overflowed(lowest - below, size) == stack);
    }
    CHECK(size == stack_bytes(stack->size_class));
    char* far_above = lowest + (std::size_t{1} << 29);  // Reserved, but no stack yet.
    CHECK(space.find_overflowed(far_above, size) == nullptr);
  }
  const char* top = space.find_top(stacks[8]->lowest);  // No stack is above it yet.
  CHECK(space.find_overflowed(top, size) == nullptr);
}

TEST_CASE("ten thousand stacks with guards use only a few memory mappings") {
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
    // A sanitizer also maps memory meanwhile, but not for every stack.
    CHECK(more <= (weft::test::kSanitized ? count / 4 : 8));
  } else {
    CHECK(more <= 2 * count + 8);
  }
}

TEST_CASE("no stack is handed out twice when stacks are taken and released at random") {
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

// The environment may limit address space. The test uses a child process, because a limit cannot be
// raised again.
TEST_CASE("a small address space limits the number of stacks but causes no crash") {
  if (weft::test::kSanitized) return weft::test::skip(kSanitizerSpace);
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

bool can_have_memory_and_a_thread() {
  constexpr std::size_t kMuch = std::size_t{64} << 20;
  void* memory = mmap(nullptr, kMuch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, kMuch);
  try {
    std::thread([] {}).join();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

TEST_CASE("stacks leave part of a small address space free for heap memory and threads") {
  if (weft::test::kSanitized) return weft::test::skip(kSanitizerSpace);
  CHECK(status_of_child([] {
          const rlimit limit{rlim_t{1} << 30, rlim_t{1} << 30};
          if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
          StackSpace space(&Coroutine::entry);
          for (unsigned size_class = 0; size_class < 4; ++size_class) {
            unsigned taken = 0;
            while (space.take(size_class, 32) != nullptr && ++taken < 10'000) continue;
            if (taken == 0 || taken == 10'000) return 2;
          }
          return can_have_memory_and_a_thread() ? 0 : 3;
        }) == 0);
}

TEST_CASE(
    "a hundred stack spaces fit into the address space and leave enough room for the program") {
  if (weft::test::kSanitized) return weft::test::skip(kSanitizerSpace);
  std::vector<std::unique_ptr<StackSpace>> spaces;
  for (int i = 0; i < 100; ++i) {
    spaces.push_back(std::make_unique<StackSpace>(&Coroutine::entry));
    for (unsigned size_class = 0; size_class < kStackSizes; ++size_class) {
      REQUIRE(spaces.back()->take(size_class, 1) != nullptr);
    }
  }
  constexpr std::size_t kMuch = std::size_t{16} << 40;
  void* memory =
      mmap(nullptr, kMuch, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  munmap(memory, kMuch);
}

// Imitates Linux before 6.13, or a sandbox that refuses unknown calls.
void refuse_guard_advice() {
  constexpr unsigned kGuardInstall = 102;
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_madvise, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kGuardInstall, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(weft::test::kNotPossibleHere);
  }
}

TEST_CASE("protected pages guard the stacks when the kernel lacks MADV_GUARD_INSTALL") {
  if (weft::test::kSanitized) return weft::test::skip(kSanitizerSpace);
  const int status = status_of_child([] {
    refuse_guard_advice();
    StackSpace space(&Coroutine::entry);
    if (space.guard_kind() != GuardKind::protection) return 1;
    for (Stack* stack : unchain(space.take(2, 4))) {
      char* lowest = stack->lowest;
      if (signal_of_touching(lowest) != 0) return 2;
      if (signal_of_touching(lowest - 1) != SIGSEGV) return 3;
      if (signal_of_touching(lowest - kGuardBytes) != SIGSEGV) return 4;
      std::size_t size = 0;
      if (space.find_overflowed(lowest - 1, size) != stack) return 5;
    }
    return 0;
  });
  check_child(status, "the system refuses filters of system calls");
}

TEST_CASE(
    "stacks leave some permitted memory mappings unused when the kernel lacks "
    "MADV_GUARD_INSTALL") {
  if (weft::test::kSanitized) return weft::test::skip(kSanitizerSpace);
  const int status = status_of_child([] {
    refuse_guard_advice();
    const std::size_t most = weft::base::most_mappings();
    if (most > 100'000) return weft::test::kNotPossibleHere;
    std::size_t taken = 0;
    {
      StackSpace space(&Coroutine::entry);
      while (Stack* chain = space.take(0, 32)) {
        taken += weft::base::chain_length(chain);
        if (taken > most) return 1;
      }
      if (taken < most / 4 || weft::base::count_mappings() > most / 8 * 7) return 2;
      if (!can_have_memory_and_a_thread()) return 3;
    }
    // The next space can use the memory of an earlier one.
    StackSpace other(&Coroutine::entry);
    return other.take(0, 32) != nullptr ? 0 : 4;
  });
  check_child(status, "no filter of system calls is possible, or too many mappings are allowed");
}

TEST_SUITE_END();

}  // namespace
