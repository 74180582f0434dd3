#include "scheduler/sleep/idle_set.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "base/parker.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using weft::scheduler::IdleSet;
using weft::test::kSlowdown;

TEST_SUITE_BEGIN("scheduler/idle_set");

TEST_CASE("adding work wakes no worker when no worker is asleep") {
  IdleSet idle(8);
  CHECK(!idle.anyone_asleep());
  CHECK(!idle.wants_wake_hint());
  CHECK(idle.work_added() == IdleSet::kNobody);
}

TEST_CASE("adding work wakes no worker while another worker is searching for work") {
  IdleSet idle(4);
  for (unsigned worker = 0; worker < 4; ++worker) idle.begin_sleep(worker);
  const int chosen = idle.work_added();
  REQUIRE(chosen != IdleSet::kNobody);
  CHECK(idle.work_added() == IdleSet::kNobody);
  CHECK(!idle.try_end_sleep(static_cast<unsigned>(chosen)));  // It already counts as searching.
  CHECK(idle.end_search());
  CHECK(idle.work_added() != IdleSet::kNobody);
}

TEST_CASE(
    "each sleeping worker is woken only once when work is added repeatedly, regardless of the "
    "number of workers") {
  for (const unsigned workers : {1U, 63U, 64U, 65U, IdleSet::kMaxWorkers}) {
    IdleSet idle(workers);
    for (unsigned worker = 0; worker < workers; ++worker) idle.begin_sleep(worker);
    std::set<int> chosen;
    for (unsigned i = 0; i < workers; ++i) {
      const int worker = idle.work_added();
      REQUIRE(worker >= 0);
      REQUIRE(worker < static_cast<int>(workers));
      REQUIRE(chosen.insert(worker).second);
      REQUIRE(idle.end_search());
    }
    CHECK(idle.work_added() == IdleSet::kNobody);
    CHECK(!idle.anyone_asleep());
  }
}

TEST_CASE("adding work does not wake a worker that has already ended its sleep by itself") {
  IdleSet idle(2);
  idle.begin_sleep(0);
  idle.begin_sleep(1);
  CHECK(idle.try_end_sleep(0));
  CHECK(idle.work_added() == 1);
  CHECK(idle.end_search());
}

TEST_CASE("at most half of the workers, rounded up, may search for work at once") {
  for (const unsigned workers : {1U, 2U, 3U, 8U}) {
    IdleSet idle(workers);
    unsigned searching = 0;
    while (idle.try_begin_search()) ++searching;
    CHECK(searching == (workers + 1) / 2);
    for (; searching > 1; --searching) CHECK(!idle.end_search());
    CHECK(idle.end_search());
  }
}

// The protocol of README.md with a counter instead of queues. A producer makes work visible and may
// then leave. If sleepers did not look again after announcing their sleep, the work would remain.
TEST_CASE("work that is added while workers fall asleep is always found by a worker") {
  weft::test::TestGuard guard("idle protocol");
  constexpr unsigned kWorkers = 3;
  const int items = 20'000 / static_cast<int>(kSlowdown);
  IdleSet idle(kWorkers);
  std::vector<weft::base::Parker> parkers(kWorkers);
  std::atomic<int> work{0};
  std::atomic<int> done{0};
  const auto wake_one = [&] {
    const int chosen = idle.work_added();
    if (chosen != IdleSet::kNobody) (void)parkers[static_cast<unsigned>(chosen)].unpark();
  };
  const auto take = [&] {
    int count = work.load();
    while (count > 0 && !work.compare_exchange_weak(count, count - 1)) {
    }
    return count > 0;
  };
  std::vector<std::thread> workers;
  for (unsigned number = 0; number < kWorkers; ++number) {
    workers.emplace_back([&, number] {
      bool searching = false;
      while (done.load() < items) {
        if (!searching) searching = idle.try_begin_search();
        const bool found = take();
        if (found) {
          if (std::exchange(searching, false) && idle.end_search()) {
            weft::detail::full_fence();
            if (work.load() > 0) wake_one();
          }
          if (done.fetch_add(1) + 1 == items) {
            for (auto& parker : parkers) (void)parker.unpark();
          }
          continue;
        }
        idle.begin_sleep(number);
        if (std::exchange(searching, false)) (void)idle.end_search();
        weft::detail::full_fence();
        const bool awake = work.load() > 0 || done.load() == items ||
                           parkers[number].park_until(weft::Deadline::never());
        if (!idle.try_end_sleep(number)) {
          if (!awake) (void)parkers[number].park_until(weft::Deadline::never());
          searching = true;
        }
      }
    });
  }
  weft::test::Random random(1);
  for (int i = 0; i < items; ++i) {
    work.fetch_add(1);
    weft::detail::full_fence();
    wake_one();
    // Sometimes all workers get time to fall asleep.
    if (random.one_in(20)) {
      while (work.load() > 0) std::this_thread::yield();
    }
  }
  for (std::thread& worker : workers) worker.join();
  CHECK(done.load() == items);
}

TEST_SUITE_END();

}  // namespace
