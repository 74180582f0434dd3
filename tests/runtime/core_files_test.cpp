// Tests which data of parked fibers a core file contains.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>
#include <weft/event.hpp>
#include <weft/wait_group.hpp>

#include "scheduler/scheduler.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"
#include "tests/support/core_files.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/skip.hpp"

namespace weft::test {
namespace {

constexpr std::uintptr_t kPage = 4096;

// Holds the addresses of two frames of a fiber: the frame of its callable, and the frame in which
// it waits.
struct Frames {
  const char* outermost = nullptr;
  const char* innermost = nullptr;
};

[[gnu::noinline]] void wait_below(std::size_t bytes, Event& end, Frames& frames) {
  auto* room = static_cast<volatile char*>(__builtin_alloca(bytes));
  room[0] = 1;
  frames.innermost = static_cast<const char*>(__builtin_frame_address(0)) - bytes;
  end.wait();
  room[0] = 2;
}

std::size_t page_in_core(const char* address) {
  const auto offset = reinterpret_cast<std::uintptr_t>(address) % kPage;
  return bytes_in_core(address - offset, address - offset + kPage);
}

}  // namespace

TEST_SUITE_BEGIN("runtime/core_files");

FIBER_TEST_CASE(
    "a small core file contains the call stacks of parked and running fibers, and no unused stack "
    "memory") {
  if (kSanitized) {
    return weft::test::skip("a sanitizer's frames are larger");
  }
  if (!shows_flags_of_mappings()) return;
  constexpr std::size_t kFibers = 20;
  constexpr std::size_t kDeep = std::size_t{20} << 10;
  Event end;
  WaitGroup ended;
  std::vector<Frames> frames(kFibers);
  for (std::size_t i = 0; i < kFibers; ++i) {
    ended.go([&, i] {
      frames[i].outermost = static_cast<const char*>(__builtin_frame_address(0));
      wait_below(i % 2 == 0 ? 64 : kDeep, end, frames[i]);
    });
  }
  await_parked(kFibers);
  // The last fiber may not have left its stack, and holds the event's lock until then.
  CHECK_FALSE(end.wait_for(std::chrono::microseconds(100)));
  const char* const own = static_cast<const char*>(__builtin_frame_address(0));
  CHECK(page_in_core(own - 3 * kPage) == kPage);
  scheduler::make_core_small();
  CHECK(page_in_core(own) == kPage);
  CHECK(page_in_core(own - 3 * kPage) == kPage);  // A running fiber keeps all pages.
  for (const Frames& of : frames) {
    CHECK(page_in_core(of.outermost) == kPage);
    CHECK(page_in_core(of.innermost) == kPage);
    CHECK(page_in_core(of.innermost - 3 * kPage) == 0);
  }
  end.set();
  ended.wait();
}

// The misuse that ends the process is detected after the fiber is marked as parked, but before it
// has left its stack.
FIBER_TEST_CASE(
    "a small core file contains the complete call stack of a fiber that is about to park") {
  if (kSanitized) {
    return weft::test::skip("a sanitizer's frames are larger");
  }
  if (!shows_flags_of_mappings()) return;
  fibers::Fiber& self = *scheduler::current_worker()->current_fiber();
  const char* const own = static_cast<const char*>(__builtin_frame_address(0));
  self.state.store(fibers::FiberState::parked, detail::relaxed);
  scheduler::make_core_small();
  self.state.store(fibers::FiberState::running, detail::relaxed);
  CHECK(page_in_core(own) == kPage);
  CHECK(page_in_core(own - 3 * kPage) == kPage);
}

TEST_SUITE_END();

}  // namespace weft::test
