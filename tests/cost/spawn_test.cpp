// Tests that fibers of a warm worker make no allocation.
#include <chrono>
#include <string>
#include <vector>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"
#include "tests/cost/allocations.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace {

using weft::test::allocations_of;

constexpr int kFibers = 200;

#define COST_TEST_CASE(sentence) FIBER_TEST_CASE_WITH(sentence, {.workers = {1}})

TEST_SUITE_BEGIN("cost/spawn");

COST_TEST_CASE("a fiber that is spawned without a handle allocates nothing") {
  CHECK(allocations_of([] {
          weft::WaitGroup group;
          for (int i = 0; i < kFibers; ++i) group.go([] {});
          group.wait();
        }) == 0);
}

COST_TEST_CASE(
    "a joined fiber allocates nothing, whether it runs on the joiner's stack or on its own stack") {
  CHECK(allocations_of([] {
          for (int i = 0; i < kFibers; ++i) CHECK(weft::spawn([i] { return i; }).join() == i);
        }) == 0);
  std::vector<weft::JoinHandle<void>> handles;
  handles.reserve(kFibers);
  CHECK(allocations_of([&] {
          for (int i = 0; i < kFibers; ++i) handles.push_back(weft::spawn([] {}));
          handles.clear();
        }) == 0);
}

COST_TEST_CASE("a fiber with a large result makes one allocation") {
  struct Large {
    char bytes[200];
  };
  CHECK(allocations_of([] { (void)weft::spawn([] { return Large{}; }).join(); }) == 1);
}

// Sleeps, and stores the address of its frame in `frame`.
[[gnu::noinline, maybe_unused]] void sleep_below(const char*& frame) {
  frame = static_cast<const char*>(__builtin_frame_address(0));
  weft::this_fiber::sleep_for(std::chrono::milliseconds(1));
  asm volatile("" : : : "memory");  // Prevents a tail call.
}

// If very many fibers sleep, their frames are not in a cache when they continue, so each cache line
// counts.
COST_TEST_CASE("a sleeping fiber uses at most 216 bytes of its stack for the sleep") {
#if defined(__x86_64__) && defined(__OPTIMIZE__) && defined(NDEBUG) && !defined(__clang__) && \
    !defined(WEFT_CONTEXT_BOOST) && !defined(WEFT_SHAKE) && !defined(__SSP_STRONG__) &&       \
    !defined(__SSP_ALL__) && !defined(__OPTIMIZE_SIZE__) && !defined(WEFT_SOURCES_TOGETHER)
  constexpr std::ptrdiff_t kMost = 216;
  const char* frame = nullptr;
  const weft::fibers::Stack* stack = nullptr;
  weft::WaitGroup group;
  group.go([&] {
    stack = weft::scheduler::current_worker()->current_fiber()->stack.load(weft::detail::relaxed);
    sleep_below(frame);
  });
  while (frame == nullptr) weft::this_fiber::yield();
  const auto context = stack->context.load(weft::detail::relaxed);
  const std::ptrdiff_t used = frame - weft::fibers::end_of(context);
  CHECK(used <= kMost);
  group.wait();
#else
  weft::test::skip("frames have this size only in plain g++ builds with optimization");
#endif
}

TEST_SUITE_END();

}  // namespace
