// Pages that deep calls have left below parked fibers are given back while they are parked.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/deadline.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/wait_group.hpp>

#include "base/membarrier.hpp"
#include "fibers/gate.hpp"
#include "scheduler/scheduler.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Deadline;
using weft::scheduler::Scheduler;
using weft::scheduler::StackTrimmer;

bool trims() {
  const bool can =
      weft::fibers::kHasGates && !weft::fibers::kSanitized && weft::base::prepare_barriers();
  if (!can) MESSAGE("skipped: stacks of parked fibers are not trimmed in this build, or here");
  return can;
}
constexpr std::size_t kPage = 4096;
constexpr std::size_t kDeep = 40 << 10;

// Touches the stack far below its caller's frame, and says where.
[[gnu::noinline]] const char* dive(unsigned char mark) {
  char depth[kDeep];
  std::memset(depth, mark, sizeof depth);
  const char* lowest = depth;
  asm volatile("" : "+r"(lowest) : : "memory");
  return lowest;
}

// The same, and how many bytes are not what was written, when who trims has had its chance.
[[gnu::noinline]] int dive_and_look(unsigned char mark, bool pauses) {
  unsigned char depth[kDeep];
  std::memset(depth, mark, sizeof depth);
  asm volatile("" : : "r"(depth) : "memory");
  if (pauses) std::this_thread::yield();
  int wrong = 0;
  for (const unsigned char byte : depth) wrong += byte == mark ? 0 : 1;
  return wrong;
}

// Calls `function` from so many bytes further down.
template <class Function>
[[gnu::noinline]] void call_below(std::size_t bytes, Function function) {
  char* frame = static_cast<char*>(__builtin_alloca(bytes));
  asm volatile("" : "+r"(frame) : : "memory");
  function();
}

std::size_t resident(const char* from) {
  std::vector<unsigned char> pages(kDeep / kPage - 2);
  const auto first = (reinterpret_cast<std::uintptr_t>(from) + kPage - 1) & ~(kPage - 1);
  if (mincore(reinterpret_cast<void*>(first), pages.size() * kPage, pages.data()) != 0) return 0;
  std::size_t count = 0;
  for (const unsigned char page : pages) count += page & 1U;
  return count;
}

TEST_SUITE_BEGIN("scheduler/deep_stacks");

THREAD_TEST_CASE_WITH("what deep calls have left is given back while the fiber is parked",
                      {.options = {.trim_pause = 1ms}, .monitored = true}) {
  if (!trims()) return;
  constexpr int kFibers = 20;
  weft::Event end;
  weft::WaitGroup group;
  group.add(kFibers);
  std::atomic<int> parked{0};
  std::vector<const char*> depths(kFibers);
  std::atomic<int> intact{0};
  for (int i = 0; i < kFibers; ++i) {
    // Wherever in a page the calls end, that page stays.
    runtime.go([&, i] {
      call_below(static_cast<std::size_t>(i) * kPage * 2 / kFibers, [&, i] {
        char live[512];
        std::memset(live, i, sizeof live);
        depths[static_cast<std::size_t>(i)] = dive(1);
        ++parked;
        end.wait();
        int right = 1;
        for (const char byte : live) right &= byte == static_cast<char>(i) ? 1 : 0;
        intact += right;
        group.done();
      });
    });
  }
  while (parked < kFibers) std::this_thread::sleep_for(1ms);
  // Each at its time; the deadline of the case ends this if one never is.
  for (const char* depth : depths) {
    while (resident(depth) != 0) std::this_thread::sleep_for(1ms);
  }
  // A stack is counted after its pages have been given back.
  while (Scheduler::current()->trimmer().trimmed() < kFibers) std::this_thread::sleep_for(1ms);
  end.set();
  group.wait();
  CHECK(intact == kFibers);
}

THREAD_TEST_CASE_WITH("a pause of 0 keeps the stacks of parked fibers as they are",
                      {.options = {.monitor = false, .trim_pause = 0ns}}) {
  constexpr unsigned kFibers = 20;
  weft::Event end;
  weft::WaitGroup group;
  group.add(kFibers);
  for (unsigned i = 0; i < kFibers; ++i) {
    runtime.go([&] {
      (void)dive(1);
      end.wait();
      group.done();
    });
  }
  weft::test::await_parked(kFibers);
  Scheduler& scheduler = *Scheduler::current();
  while (!scheduler.all_are_asleep()) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) scheduler.trimmer().step(Deadline::now_nanoseconds());
  CHECK(scheduler.trimmer().trimmed() == 0);
  end.set();
  group.wait();
}

// All fibers are asleep, so that one step looks at as many as it can hang gates in front of.
THREAD_TEST_CASE_WITH("more deep stacks than there are gates are given back, some after others",
                      {.options = {.monitor = false, .trim_pause = 1ns}}) {
  if (!trims()) return;
  constexpr unsigned kFibers = 600;
  weft::Event end;
  weft::WaitGroup group;
  group.add(kFibers);
  for (unsigned i = 0; i < kFibers; ++i) {
    runtime.go([&] {
      (void)dive(1);
      end.wait();
      group.done();
    });
  }
  weft::test::await_parked(kFibers);
  Scheduler& scheduler = *Scheduler::current();
  StackTrimmer& trimmer = scheduler.trimmer();
  while (!scheduler.all_are_asleep()) std::this_thread::yield();
  // The monitor may sleep as long as no sweep is under way.
  CHECK(!trimmer.is_busy());
  while (trimmer.trimmed() < kFibers) trimmer.step(Deadline::now_nanoseconds());
  while (trimmer.is_busy()) trimmer.step(Deadline::now_nanoseconds());
  end.set();
  group.wait();
}

// The fibers dive, wait, and find what they have left in their frames, while another thread trims
// without a pause. About every second fiber is parked at any time, and some begin and end.
THREAD_TEST_CASE_WITH(
    "fibers that park, go on and end while stacks are trimmed keep what they have",
    {.options = {.monitor = false, .trim_pause = 1ns}}) {
  if (!trims()) return;
  constexpr int kPairs = 30;
  constexpr int kRounds = 80;
  std::atomic<int> wrong{0};
  std::atomic<int> left{2 * kPairs};
  for (int i = 0; i < kPairs; ++i) {
    auto channel = std::make_shared<weft::Channel<int>>(0);
    const auto player = [&wrong, &left, channel](int own, bool sends) {
      for (int round = 0; round < kRounds; ++round) {
        const auto mark = static_cast<unsigned char>(own + round);
        unsigned char live[256];
        std::memset(live, mark, sizeof live);
        (void)dive(mark);
        if (sends) {
          (void)channel->send(round);
        } else {
          (void)channel->receive();
        }
        // As deep as before: of what is written after a wait nothing is lost, either.
        wrong += dive_and_look(mark, round % 16 == own % 16);
        wrong += static_cast<int>(std::count_if(
            std::begin(live), std::end(live), [mark](unsigned char byte) { return byte != mark; }));
        if (round % 50 == 0) weft::spawn([] { (void)dive(1); }).join();
      }
      --left;
    };
    runtime.go([player, i] { player(i, true); });
    runtime.go([player, i] { player(i, false); });
  }
  Scheduler& scheduler = *Scheduler::current();
  while (left > 0) {
    scheduler.trimmer().step(Deadline::now_nanoseconds());
    std::this_thread::yield();
  }
  CHECK(wrong == 0);
}

TEST_SUITE_END();

}  // namespace
