// A warm pool makes no allocation for a task, and wakes no thread.
//
// This is a separate program, because it replaces operator new.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <stop_token>
#include <system_error>
#include <weft/detail/simulated.hpp>
#include <weft/function_pool.hpp>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "base/shake.hpp"
#include "tests/cost/allocations.hpp"
#include "tests/support/fiber_test.hpp"

thread_local std::uint64_t weft::test::allocations = 0;

namespace {

void* allocate(std::size_t size, std::size_t alignment) {
  ++weft::test::allocations;
  // The size of an aligned allocation must be a multiple of its alignment.
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  if (void* memory = std::aligned_alloc(alignment, rounded)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// The other forms call these functions.
void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::FiberPool;
using weft::FunctionPool;
using weft::OnFull;
using weft::PoolOptions;
using weft::test::allocations;
using weft::test::allocations_of;

constexpr int kTasks = 500;

PoolOptions options(OnFull when_full) {
  return {.capacity = 2, .queue_capacity = 3, .on_full = when_full, .idle_timeout = weft::kNever};
}

// Uses one worker, so that "warm" means the same each time.
#define COST_TEST_CASE(sentence) FIBER_TEST_CASE_WITH(sentence, {.workers = {1}})

// Counts the allocations of the first wait of the process, before main(). A destructor may make
// this wait when memory is short.
const std::uint64_t allocations_of_first_wait = [] {
  weft::Runtime runtime({.workers = 1});
  return runtime.run([] {
    FiberPool pool({.capacity = 1});
    const std::uint64_t before = allocations;
    pool.wait_idle();
    return allocations - before;
  });
}();

thread_local int clock_reads = 0;

// Counts how often code on this thread reads the clock for a deadline, during its lifetime.
class ClockReads {
 public:
  ClockReads() noexcept {
    clock_reads = 0;
    weft::detail::installed_simulation.store(&kCounting, weft::detail::relaxed);
  }
  ~ClockReads() { weft::detail::installed_simulation.store(nullptr, weft::detail::relaxed); }
  ClockReads(const ClockReads&) = delete;
  ClockReads& operator=(const ClockReads&) = delete;
  [[nodiscard]] int count() const noexcept { return clock_reads; }

 private:
  static std::int64_t machine_now() noexcept {
    return std::chrono::nanoseconds(Deadline::Clock::now().time_since_epoch()).count();
  }
  // All callers are outside of a simulation, so none draws random numbers from it.
  static constexpr weft::detail::Simulated kCounting{
      .is_inside = []() noexcept { return false; },
      .now =
          []() noexcept {
            ++clock_reads;
            return machine_now();
          },
      .machine_now = machine_now,
      .machine_time = [](std::int64_t time) noexcept { return time; },
      .wall_clock = machine_now,
      .random = []() noexcept { return std::uint64_t{0}; }};
};

TEST_SUITE_BEGIN("cost/pool");

COST_TEST_CASE("destroying a pool with idle workers reads no clock") {
  const weft::base::shake::Still still;
  constexpr int kPools = 100;
  const ClockReads clock;
  for (int i = 0; i < kPools; ++i) {
    FiberPool pool({.capacity = 1});
    (void)pool.submit([] {});
    pool.wait_idle();
  }
  // The worker's thread may read the clock between fibers, but not for each pool.
  CHECK(clock.count() < kPools / 2);
}

COST_TEST_CASE("a pool allocates no stop source unless a caller requests the pool's stop token") {
  const auto live = [](bool asks) {
    return allocations_of([asks] {
      FiberPool pool({.capacity = 1});
      (void)pool.submit([] {});
      if (asks) CHECK(pool.stop_token().stop_possible());
      pool.wait_idle();
    });
  };
  CHECK(live(true) == live(false) + 1);
}

COST_TEST_CASE("a process's first wait for a pool allocates no memory") {
  CHECK(allocations_of_first_wait == 0);
}

COST_TEST_CASE("the allocation counter of this test counts every form of operator new") {
  // Calls the functions explicitly, because a compiler may omit a new and its delete.
  constexpr std::align_val_t kWide{128};
  const std::uint64_t before = allocations;
  ::operator delete(::operator new(1));
  ::operator delete[](::operator new[](1));
  ::operator delete(::operator new(1, std::nothrow));
  ::operator delete(::operator new(1, kWide), kWide);
  CHECK(allocations - before == 4);
}

COST_TEST_CASE("submit() allocates nothing for a small task, whatever the value of on_full") {
  for (const OnFull when_full :
       {OnFull::block, OnFull::reject, OnFull::caller_runs, OnFull::drop_oldest}) {
    std::uint64_t ran = 0, refused = 0;
    FiberPool pool(options(when_full));
    const std::uint64_t count = allocations_of([&] {
      for (int i = 0; i < kTasks; ++i) {
        if (!pool.submit([&ran, &pool] { ran += pool.is_closed_hint() ? 0 : 1; })) ++refused;
      }
      pool.wait_idle();
    });
    CHECK(count == 0);
    // The queue was full many times.
    if (when_full == OnFull::block) CHECK(ran == 2 * kTasks);
    if (when_full == OnFull::reject) CHECK(refused > kTasks);
    if (when_full == OnFull::caller_runs) CHECK(ran == 2 * kTasks);
    if (when_full == OnFull::drop_oldest) CHECK(pool.stats().cancelled > kTasks);
  }
}

COST_TEST_CASE("try_submit() and submit_until() with a deadline or a stop token allocate nothing") {
  std::uint64_t ran = 0;
  const auto task = [&ran] { ++ran; };
  FiberPool pool(options(OnFull::block));
  std::stop_source source;
  const std::stop_token token = source.get_token();
  CHECK(allocations_of([&] {
          for (int i = 0; i < kTasks; ++i) (void)pool.try_submit(task);
          pool.wait_idle();
        }) == 0);
  CHECK(allocations_of([&] {
          for (int i = 0; i < kTasks; ++i) (void)pool.submit_until(1h, task);
          pool.wait_idle();
        }) == 0);
  CHECK(allocations_of([&] {
          for (int i = 0; i < kTasks; ++i) (void)pool.submit_until(Deadline::past(), task);
          pool.wait_idle();
        }) == 0);
  CHECK(allocations_of([&] {
          for (int i = 0; i < kTasks; ++i) (void)pool.submit_until(token, task);
          pool.wait_idle();
        }) == 0);
  CHECK(ran > 4 * kTasks);
}

COST_TEST_CASE(
    "a task with a priority, a key and a weight allocates nothing when task records are cached") {
  FiberPool pool(options(OnFull::block));
  std::uint64_t ran = 0;
  CHECK(allocations_of([&] {
          for (unsigned i = 0; i < kTasks; ++i) {
            const weft::SubmitOptions asked{
                .priority = weft::Priority::high, .key = i % 3, .weight = i % 2 + 1};
            (void)pool.submit(asked, [&ran] { ++ran; });
          }
          pool.wait_idle();
        }) == 0);
  CHECK(ran == 2 * kTasks);
}

COST_TEST_CASE(
    "FiberPool::run() allocates nothing, even if the call is nested or the caller runs the task") {
  for (const OnFull when_full : {OnFull::block, OnFull::caller_runs}) {
    FiberPool pool(options(when_full));
    int sum = 0;
    CHECK(allocations_of([&] {
            for (int i = 0; i < kTasks; ++i) {
              sum +=
                  pool.run([&] { return pool.run([&] { return pool.is_closed_hint() ? 0 : 1; }); });
            }
          }) == 0);
    CHECK(sum == 2 * kTasks);
  }
}

COST_TEST_CASE("FiberPool::async() makes one allocation for each task") {
  FiberPool pool(options(OnFull::block));
  int sum = 0;
  CHECK(allocations_of([&] {
          for (int i = 0; i < kTasks; ++i) sum += pool.async([i] { return i; }).get();
        }) == kTasks);
  CHECK(sum == kTasks * (kTasks - 1));
}

COST_TEST_CASE("a pool reuses the memory of its queue at any queue length") {
  FiberPool pool({.capacity = 1, .queue_capacity = weft::kUnlimited});
  std::uint64_t ran = 0;
  CHECK(allocations_of([&] {
          for (int i = 0; i < kTasks; ++i) (void)pool.submit([&ran] { ++ran; });
          pool.wait_idle();
        }) == 0);
  CHECK(ran == 2 * kTasks);
}

COST_TEST_CASE("a FunctionPool allocates nothing for a small argument") {
  struct Request {
    std::uint64_t words[6];
  };
  std::uint64_t sum = 0;
  FunctionPool<Request, std::uint64_t> pool(
      [&sum](Request request) { return sum += request.words[5]; }, options(OnFull::block));
  const Request request{{0, 0, 0, 0, 0, 1}};
  CHECK(allocations_of([&] {
          for (int i = 0; i < kTasks; ++i) (void)pool.invoke(request);
          pool.pool().wait_idle();
        }) == 0);
  CHECK(allocations_of([&] {
          for (int i = 0; i < kTasks; ++i) (void)pool.try_invoke(request);
          pool.pool().wait_idle();
        }) == 0);
  CHECK(allocations_of([&] {
          for (int i = 0; i < kTasks; ++i) (void)pool.process(request);
        }) == 0);
  CHECK(sum > 4 * kTasks);
}

COST_TEST_CASE(
    "submitting a task to a pool whose workers run on the caller's thread wakes no other thread") {
  FiberPool pool(options(OnFull::block));
  std::uint64_t ran = 0;
  const auto use = [&] {
    for (int i = 0; i < kTasks; ++i) {
      (void)pool.submit([&ran] { ++ran; });
      while (pool.stats().busy + pool.stats().queued > 0) weft::this_fiber::yield();
      pool.run([&ran] { ++ran; });
    }
  };
  use();
  const weft::RuntimeStats before = runtime.stats();
  use();
  const weft::RuntimeStats after = runtime.stats();
  CHECK(ran == 4 * kTasks);
  // Each sleep is one system call, and so is each wake.
  CHECK(after.worker_sleeps == before.worker_sleeps);
  CHECK(after.worker_wakeups == before.worker_wakeups);
  CHECK(after.stacks_carved == before.stacks_carved);
  CHECK(after.spawned == before.spawned);
}

TEST_SUITE_END();

}  // namespace
