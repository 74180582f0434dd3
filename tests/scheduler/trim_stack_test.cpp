// Tests that a fiber gives back stack pages that deep calls have used.
#include <sys/mman.h>
#include <ucontext.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kDeep = 40 << 10;

// Touches the stack far below its caller's frame, and returns the address.
[[gnu::noinline]] std::uintptr_t dive() {
  char depth[kDeep];
  std::memset(depth, 7, sizeof depth);
  const char* lowest = depth;
  asm volatile("" : "+r"(lowest) : : "memory");
  return reinterpret_cast<std::uintptr_t>(lowest);
}

// Returns how many pages of the dive are in memory, without the uppermost, which other calls touch.
std::size_t resident(std::uintptr_t from) {
  std::vector<unsigned char> pages(kDeep / kPage - 4);
  const std::uintptr_t first = (from + kPage - 1) & ~(kPage - 1);
  REQUIRE(mincore(reinterpret_cast<void*>(first), pages.size() * kPage, pages.data()) == 0);
  std::size_t count = 0;
  for (const unsigned char page : pages) count += page & 1U;
  return count;
}

TEST_SUITE_BEGIN("scheduler/trim_stack");

FIBER_TEST_CASE(
    "trim_stack() releases the pages that a deep call has used, and keeps the fiber's frames") {
  unsigned char own[2 * kPage];
  std::memset(own, 42, sizeof own);
  for (int again = 0; again < 3; ++again) {
    const std::uintptr_t depth = dive();
    CHECK(resident(depth) == kDeep / kPage - 4);
    weft::this_fiber::trim_stack();
    CHECK(resident(depth) == 0);
    std::size_t wrong = 0;
    for (const unsigned char byte : own) wrong += byte == 42 ? 0 : 1;
    CHECK(wrong == 0);
  }
}

FIBER_TEST_CASE("repeated trims of a shallow stack have no effect") {
  for (int again = 0; again < 3; ++again) weft::this_fiber::trim_stack();
  CHECK(weft::this_fiber::is_fiber());
}

TEST_CASE("trim_stack() on a plain thread has no effect") {
  const std::uintptr_t depth = dive();
  weft::this_fiber::trim_stack();
  CHECK(resident(depth) == kDeep / kPage - 4);
}

ucontext_t outside, inside;
std::uintptr_t inner_depth;

void run_inside() {
  inner_depth = dive();
  weft::this_fiber::trim_stack();
  swapcontext(&inside, &outside);
}

FIBER_TEST_CASE_WITH("trim_stack() does not trim a stack that the program itself has allocated",
                     {.workers = {1}}) {
  if (weft::test::kSanitized) {
    return weft::test::skip("no sanitizer is notified of such stacks");
  }
  constexpr std::size_t kBytes = 256 << 10;
  const auto memory = std::make_unique<char[]>(kBytes);
  const std::uintptr_t depth = dive();
  REQUIRE(getcontext(&inside) == 0);
  inside.uc_stack.ss_sp = memory.get();
  inside.uc_stack.ss_size = kBytes;
  inside.uc_link = nullptr;
  makecontext(&inside, &run_inside, 0);
  REQUIRE(swapcontext(&outside, &inside) == 0);
  CHECK(resident(inner_depth) == kDeep / kPage - 4);
  CHECK(resident(depth) == kDeep / kPage - 4);
}

ucontext_t above, within;
weft::Runtime* runtime_within;

void wait_within() {
  weft::this_fiber::sleep_for(std::chrono::milliseconds(1));
  runtime_within->trim();
  weft::this_fiber::yield();
  swapcontext(&within, &above);
}

// Waits on the stack `memory`, which is in the caller's frame. Returns how many bytes of a frame
// below it are lost meanwhile.
[[gnu::noinline]] std::size_t lost_while_waiting(char* memory, std::size_t bytes) {
  unsigned char own[5 * kPage];
  std::memset(own, 42, sizeof own);
  (void)getcontext(&within);
  within.uc_stack.ss_sp = memory;
  within.uc_stack.ss_size = bytes;
  within.uc_link = nullptr;
  makecontext(&within, &wait_within, 0);
  asm volatile("" : : "r"(own) : "memory");
  swapcontext(&above, &within);
  asm volatile("" : : "r"(own) : "memory");
  std::size_t lost = 0;
  for (const unsigned char byte : own) lost += byte == 42 ? 0 : 1;
  return lost;
}

TEST_CASE(
    "a trim preserves the frames of a fiber that waits on a second stack inside its own stack") {
  if (weft::test::kSanitized) {
    return weft::test::skip("no sanitizer is notified of such stacks");
  }
  weft::Runtime runtime({.workers = 1});
  runtime_within = &runtime;
  std::size_t lost = 1;
  weft::go({.stack_size = 128 << 10}, [&lost] {
    char memory[32 << 10];
    lost = lost_while_waiting(memory, sizeof memory);
  });
  REQUIRE(runtime.wait_idle_for(std::chrono::seconds(20)));
  CHECK(lost == 0);
}

TEST_SUITE_END();

}  // namespace
