#include "scheduler/worker/thief.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "fibers/fiber.hpp"
#include "scheduler/tuning.hpp"

namespace {

using weft::scheduler::Sight;
using weft::scheduler::Thief;
namespace tuning = weft::scheduler::tuning;

constexpr std::int64_t kMicrosecond = 1'000;
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kStart = 1'000 * kMillisecond;

// Simulates a thread. The test sets the thread's facts, and counts the queries.
class KnownThread final : public weft::scheduler::ThreadFacts {
 public:
  std::int64_t used = kMillisecond;
  bool runs = true;
  mutable int questions = 0;

  [[nodiscard]] std::int64_t processor_time() const noexcept override { return used; }
  [[nodiscard]] bool is_runnable() const noexcept override {
    ++questions;
    return runs;
  }
};

// Makes a thief's decisions about worker 1, which the thief saw at kStart.
struct Watcher {
  Thief thief{2, 1};
  Sight sight{.is_open = true, .ring_head = 500, .switches = 500};
  KnownThread thread;
  bool is_done_soon = false;

  Watcher() { (void)thief.look(1, sight, kStart); }

  Thief::Visit visit(std::int64_t after) {
    return thief.visit(1, sight, thread, is_done_soon, kStart + after);
  }
};

TEST_SUITE_BEGIN("scheduler/thief");

TEST_CASE(
    "a thief takes fibers from a ring only if the ring's owner would need longer to run them than "
    "the thief needs to move them") {
  struct Row {
    std::int64_t elapsed;
    std::uint32_t run;
    std::uint32_t size;
    bool is_taken;
  };
  for (const Row& row : {
           Row{5 * kMicrosecond, 10, 0, false},     // The queue is empty.
           Row{5 * kMicrosecond, 0, 1, true},       // No fiber has run.
           Row{10 * kMicrosecond, 100, 200, true},  // The owner needs 20 us.
           Row{10 * kMicrosecond, 100, 199, false}, Row{10 * kMicrosecond, 1, 2, true},
           Row{10 * kMicrosecond, 1, 1, false}, Row{tuning::kLookIsOld, 1, 1, true},
           Row{tuning::kLookIsOld + 1, 1, 1, false},  // It is out of date.
       }) {
    CAPTURE(row.elapsed);
    CAPTURE(row.run);
    CAPTURE(row.size);
    Watcher watcher;
    watcher.sight.ring_head += row.run;
    watcher.sight.ring_size = row.size;
    CHECK(watcher.thief.look(1, watcher.sight, kStart + row.elapsed).has_ring == row.is_taken);
  }
}

TEST_CASE("a thief checks the same worker again only after 5 us") {
  const Watcher watcher;
  CHECK(!watcher.thief.may_look(1, kStart + tuning::kBetweenLooks - 1));
  CHECK(watcher.thief.may_look(1, kStart + tuning::kBetweenLooks));
}

TEST_CASE("a thief takes the next fiber of a worker that ran no fiber between two checks") {
  std::array<weft::fibers::Fiber, 2> fibers;
  Watcher watcher;
  std::int64_t now = kStart;
  const auto is_taken = [&] {
    now += tuning::kBetweenLooks;
    return watcher.thief.look(1, watcher.sight, now).has_next;
  };
  CHECK(!is_taken());
  watcher.sight.next = &fibers[0];
  CHECK(!is_taken());
  CHECK(is_taken());
  watcher.sight.next = &fibers[1];
  CHECK(!is_taken());
  ++watcher.sight.switches;
  CHECK(!is_taken());
  CHECK(is_taken());
}

TEST_CASE("a worker checks at most once every 200 us whether other workers are stuck in a fiber") {
  Thief thief(2, 1);
  CHECK(thief.begin_visits(kStart));
  CHECK(!thief.begin_visits(kStart + tuning::kVisitPeriod - 1));
  CHECK(thief.begin_visits(kStart + tuning::kVisitPeriod));
}

TEST_CASE(
    "a worker steals half of the difference in queue lengths when the other worker's fibers would "
    "wait too long") {
  struct Row {
    std::int64_t queued;
    std::int64_t mine;
    std::uint64_t run;
    std::int64_t taken;
  };
  // In 200 us.
  for (const Row& row : {
           Row{100, 20, 400, 40},  // Their turn comes in 50 us.
           Row{100, 20, 401, 0},
           Row{10, 20, 1, -5},
           Row{21, 20, 1, 0},
           Row{10'000, 0, 1, tuning::kMostRelieved},
       }) {
    CAPTURE(row.queued);
    CAPTURE(row.run);
    Watcher watcher;
    watcher.sight.queued = row.queued;
    watcher.sight.switches += row.run;
    const Thief::Visit found = watcher.visit(tuning::kVisitPeriod);
    CHECK(!found.is_stuck);
    const Thief::Relief relief = found.relief(row.mine);
    CHECK(relief.fibers == row.taken);
    CHECK(relief.must_be_older == found.is_slow);
    CHECK(!relief.has_next);
    watcher.sight.is_open = false;
    CHECK(watcher.visit(2 * tuning::kVisitPeriod).relief(0).fibers == 0);
  }
}

TEST_CASE("a worker takes half of the fibers of another worker that is stuck in a fiber") {
  enum class Facts : std::uint8_t { waits_for_processor, computes, is_blocked };
  struct Row {
    Facts facts;
    bool is_done_soon;
    std::int64_t after;
    bool is_stuck;
  };
  for (const Row& row : {
           Row{Facts::computes, false, 3 * kMillisecond, true},
           Row{Facts::is_blocked, false, 3 * kMillisecond, true},
           Row{Facts::waits_for_processor, false, 3 * kMillisecond, false},
           Row{Facts::waits_for_processor, true, 3 * kMillisecond, true},
           Row{Facts::is_blocked, false, tuning::kAskPeriod - 1, false},
           Row{Facts::is_blocked, true, tuning::kVisitPeriod, true},
           Row{Facts::is_blocked, true, tuning::kVisitPeriod - 1, false},
       }) {
    CAPTURE(static_cast<int>(row.facts));
    CAPTURE(row.after);
    Watcher watcher;
    watcher.is_done_soon = row.is_done_soon;
    watcher.sight.queued = 7;
    (void)watcher.visit(std::min(row.after - 1, tuning::kVisitPeriod));
    watcher.thread.runs = row.facts != Facts::is_blocked;
    if (row.facts == Facts::computes) watcher.thread.used += tuning::kComputes;
    const Thief::Visit found = watcher.visit(row.after);
    CHECK(found.is_stuck == row.is_stuck);
    if (!row.is_stuck) continue;
    const Thief::Relief relief = found.relief(1'000);
    CHECK(relief.fibers == 4);
    CHECK(relief.has_next);
    CHECK(!relief.must_be_older);
  }
}

TEST_CASE("a worker queries the kernel for another thread's wait state at most once in 2 ms") {
  Watcher watcher;
  watcher.sight.queued = 1;
  const std::int64_t period = tuning::kAskPeriod;
  for (std::int64_t after = 0; after <= 2 * period; after += period / 8) {
    (void)watcher.visit(after);
  }
  CHECK(watcher.thread.questions == 2);
}

TEST_CASE(
    "a worker runs another worker's timers that are overdue by 2 ms, or 0.2 ms if that worker is "
    "stuck") {
  struct Row {
    std::int64_t overdue;
    bool is_stuck;
    bool is_run;
  };
  for (const Row& row : {
           Row{tuning::kLongOverdue, false, true},
           Row{tuning::kLongOverdue - 1, false, false},
           Row{tuning::kOverdue, true, true},
           Row{tuning::kOverdue - 1, true, false},
       }) {
    for (const bool has_fibers : {false, true}) {
      CAPTURE(row.overdue);
      CAPTURE(has_fibers);
      Watcher watcher;
      watcher.is_done_soon = true;
      watcher.sight.queued = has_fibers ? 1 : 0;
      if (!row.is_stuck) ++watcher.sight.switches;
      watcher.sight.next_timer = kStart + kMillisecond - row.overdue;
      const Thief::Visit found = watcher.visit(kMillisecond);
      CHECK(found.runs_timers == row.is_run);
      CHECK(found.is_stuck == (row.is_stuck && has_fibers));
      if (!has_fibers) CHECK(found.relief(0).fibers == 0);
    }
  }
}

TEST_SUITE_END();

}  // namespace
