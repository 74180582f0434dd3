// Tests that none of n runnable fibers with equal work waits in a worker's queue for more than 2 n
// + 64 runs of other fibers, however large n is and whatever wakes the fibers.
//
// A fiber's wait counts in runs on the worker where it continues, from the moment at which it was
// certainly ready. The test keeps workers in step, as if all had processors of the same speed.
// Otherwise a worker that the kernel delays would delay its fibers, while other workers go ahead.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <thread>
#include <weft/blocking.hpp>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>

#include "base/shake.hpp"
#include "tests/scheduler/crowd.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::test::Clock;
using weft::test::Crowd;
using weft::test::kUnknown;
using weft::test::Time;
using weft::test::Woken;

// Half of the runnable fibers yield all the time, and half wait, so no worker runs out of work.
constexpr std::size_t waiting_of(std::size_t runnable) { return runnable / 2; }

void crowd_of_yielding(Crowd& crowd, std::size_t runnable) {
  crowd.add_yielding(runnable);
  crowd.complete();
  crowd.await_end();
}

// Each run also spawns a new fiber, which is a separate run. The spawns begin after all fibers have
// begun: new fibers that do not fit run newest first, and would delay fibers that have not begun.
void crowd_of_spawning(Crowd& crowd, std::size_t runnable) {
  for (std::size_t i = 0; i < runnable; ++i) {
    crowd.add([&crowd] {
      if (crowd.all_have_begun()) crowd.add_run();
      const Time ready = Clock::now();
      weft::this_fiber::yield();
      return ready;
    });
  }
  crowd.complete();
  crowd.await_end();
}

// Adds pairs of fibers that pass a value back and forth.
void crowd_of_pairs(Crowd& crowd, std::size_t runnable) {
  struct Side {
    weft::Channel<int> values{1};
    Woken woken;
  };
  std::deque<std::array<Side, 2>> pairs(runnable / 2);
  for (auto& pair : pairs) {
    for (const std::size_t number : {0U, 1U}) {
      Side& mine = pair[number];
      Side& other = pair[1 - number];
      crowd.add([&mine, &other, has_value = false]() mutable {
        if (has_value) other.woken.by([&] { (void)other.values.send(0); });
        has_value = mine.values.receive().has_value();
        return has_value ? mine.woken.since() : kUnknown;
      });
    }
    CHECK(pair[0].values.send(0));
  }
  crowd.complete();
  crowd.await_enough();
  for (auto& pair : pairs) {
    for (Side& side : pair) side.values.close();
  }
  crowd.await_end();
}

void crowd_of_sleepers(Crowd& crowd, std::size_t runnable) {
  const std::size_t waiting = waiting_of(runnable);
  crowd.add_yielding(runnable - waiting);
  for (std::size_t i = 0; i < waiting; ++i) {
    crowd.add([] {
      const Time due = Clock::now() + 100us;
      weft::this_fiber::sleep_until(due);
      return due;
    });
  }
  crowd.complete();
  crowd.await_end();
}

// Adds fibers whose calls one helper thread makes. The thread wakes one caller before it makes the
// next call.
void crowd_of_blocking(Crowd& crowd, std::size_t runnable) {
  const std::size_t waiting = waiting_of(runnable);
  crowd.add_yielding(runnable - waiting);
  std::deque<Woken> callers(waiting);
  Woken* before = nullptr;  // Only the helper uses it.
  for (Woken& caller : callers) {
    crowd.add([&caller, &before] {
      weft::blocking([&] {
        if (before != nullptr) before->note();
        caller.forget();
        before = &caller;
      });
      return caller.since();
    });
  }
  crowd.complete();
  crowd.await_end();
}

// Is a fiber that a plain thread wakes through `event`.
template <class Event>
struct Sleeper {
  Event event;
  Woken woken;
  std::atomic<std::size_t> turns{0};
  std::size_t wakes = 0;
};

// The calling thread wakes a fiber again after the fiber has had the turn of its last wake.
template <class Event>
void crowd_of_woken(Crowd& crowd, std::size_t runnable, std::size_t waiting) {
  crowd.add_yielding(runnable - waiting);
  std::deque<Sleeper<Event>> sleepers(waiting);
  for (Sleeper<Event>& sleeper : sleepers) {
    crowd.add([&sleeper] {
      sleeper.event.wait();
      sleeper.turns.fetch_add(1);
      return sleeper.woken.since();
    });
  }
  crowd.complete();
  for (bool is_last = false; !is_last;) {
    is_last = crowd.is_over();
    for (Sleeper<Event>& sleeper : sleepers) {
      if (sleeper.turns.load() < sleeper.wakes) continue;
      ++sleeper.wakes;
      sleeper.woken.by([&] { sleeper.event.wake(); });
    }
    std::this_thread::yield();
  }
  crowd.await_end();
}

class Permit {
 public:
  void wait() { permits_.acquire(); }
  void wake() { permits_.release(); }

 private:
  weft::Semaphore permits_{0};
};

void crowd_of_threads(Crowd& crowd, std::size_t runnable) {
  crowd_of_woken<Permit>(crowd, runnable, waiting_of(runnable));
}

class Socket {
 public:
  Socket() { CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) == 0); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    watch_ = {};
    for (const int end : ends_) ::close(end);
  }
  void wait() {
    if (watch_.handle() == nullptr) watch_ = weft::io::Watch::borrow(ends_[0]).value;
    CHECK(watch_.wait(weft::io::Ready::read).value == weft::io::Ready::read);
    char byte = 0;
    CHECK(::read(ends_[0], &byte, 1) == 1);
  }
  void wake() { CHECK(::write(ends_[1], "", 1) == 1); }

 private:
  std::array<int, 2> ends_{-1, -1};
  weft::io::Watch watch_;
};

void crowd_of_sockets(Crowd& crowd, std::size_t runnable) {
  constexpr std::size_t kMost = 200;  // Each fiber needs two descriptors.
  crowd_of_woken<Socket>(crowd, runnable, std::min(waiting_of(runnable), kMost));
}

// No spare worker replaces a worker that is kept in step, and one helper thread makes all calls.
const weft::RuntimeOptions kUnwatched{.max_blocking_threads = 1, .monitor = false};

// WEFT_TURNS_RUNNABLE sets the only number to run; 100 000 take some minutes and a gigabyte.
std::size_t wanted_runnable() {
  const char* wanted = std::getenv("WEFT_TURNS_RUNNABLE");
  return wanted == nullptr ? 0 : std::strtoull(wanted, nullptr, 10);
}

// More workers than processors are slow if they are kept in step.
std::size_t most_runnable(const weft::Runtime& runtime) {
  return (runtime.workers() == 1 ? 10'000U : 1'000U) / weft::test::kSlowdown;
}

// With several workers, the count also depends on the machine: if it stops one worker between two
// runs, the other workers continue. An unfair queue is unfair in each attempt.
bool is_fair(const weft::Runtime& runtime, void (*fill)(Crowd&, std::size_t), std::size_t runnable,
             std::size_t& longest_wait) {
  for (int attempts = runtime.workers() == 1 ? 1 : 3; attempts > 0; --attempts) {
    Crowd crowd(runtime.workers(), runnable);
    fill(crowd, runnable);
    longest_wait = crowd.longest_wait();
    if (crowd.is_fair()) return true;
  }
  return false;
}

void check_fairness(const weft::Runtime& runtime, void (*fill)(Crowd&, std::size_t)) {
  const weft::base::shake::Still still;  // Random decisions are not fair.
  const std::size_t wanted = wanted_runnable();
  const std::size_t most = wanted != 0 ? wanted : most_runnable(runtime);
  for (std::size_t runnable = wanted != 0 ? wanted : 100; runnable <= most; runnable *= 10) {
    std::size_t longest_wait = 0;
    const bool fair = is_fair(runtime, fill, runnable, longest_wait);
    if (wanted != 0) {
      MESSAGE(runtime.workers(), " workers, ", runnable, " runnable: ", longest_wait,
              " runs of others at most");
    }
    CAPTURE(runnable);
    CAPTURE(longest_wait);
    CHECK(fair);
  }
}

TEST_SUITE_BEGIN("scheduler/turns");

THREAD_TEST_CASE_WITH("a yielding fiber waits for at most two turns per other fiber",
                      {.options = kUnwatched}) {
  check_fairness(runtime, crowd_of_yielding);
}

THREAD_TEST_CASE_WITH(
    "a yielding fiber does not wait longer when other yielding fibers constantly spawn fibers",
    {.options = kUnwatched}) {
  check_fairness(runtime, crowd_of_spawning);
}

THREAD_TEST_CASE_WITH(
    "a fiber woken by another fiber waits for at most two turns per runnable fiber",
    {.options = kUnwatched}) {
  check_fairness(runtime, crowd_of_pairs);
}

THREAD_TEST_CASE_WITH("fibers whose sleep has ended wait for at most two turns per yielding fiber",
                      {.options = kUnwatched}) {
  check_fairness(runtime, crowd_of_sleepers);
}

THREAD_TEST_CASE_WITH(
    "fibers woken by blocking calls wait for at most two turns per yielding fiber",
    {.options = kUnwatched}) {
  check_fairness(runtime, crowd_of_blocking);
}

THREAD_TEST_CASE_WITH(
    "fibers woken by a plain thread wait for at most two turns per yielding fiber",
    {.options = kUnwatched}) {
  check_fairness(runtime, crowd_of_threads);
}

THREAD_TEST_CASE_WITH("fibers woken by sockets wait for at most two turns per yielding fiber",
                      {.options = kUnwatched}) {
  check_fairness(runtime, crowd_of_sockets);
}

// Each worker has one yielding fiber, so that none is idle, when one worker gets thousands of
// fibers. The workers run in step, so a worker that ran only its own fiber would give it thousands
// of turns.
THREAD_TEST_CASE_WITH(
    "a worker with few yielding fibers takes some fibers of a worker with many yielding fibers",
    {.workers = {2, 8}, .options = kUnwatched}) {
  const weft::base::shake::Still still;
  const std::size_t many = 4'000 / weft::test::kSlowdown;
  Crowd crowd(runtime.workers(), many);
  crowd.add_yielding(runtime.workers());
  while (!crowd.all_workers_run()) std::this_thread::yield();
  weft::spawn([&] { crowd.add_yielding(many); }).join();
  crowd.complete();
  crowd.await_end();
  CHECK(crowd.most_turns() < 4 * many);  // Unfair: 8 turns per other fiber.
}

TEST_SUITE_END();

}  // namespace
