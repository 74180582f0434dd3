// Tests POSIX semaphores: fibers in a Scope and plain threads wait for each other.
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include <chrono>
#include <weft/context.hpp>
#include <weft/wait_group.hpp>

#include "tests/posix/both_ways.hpp"

namespace {

using namespace std::chrono_literals;
using weft::posix::Scope;
using weft::test::check_both_ways;
using weft::test::has_hooks;
using weft::test::Log;
using weft::test::moment;
using weft::test::note;
using weft::test::times_blocked;

TEST_SUITE_BEGIN("posix/semaphores");

struct Semaphore {
  sem_t here{};
  explicit Semaphore(unsigned value, int shared = 0) { ::sem_init(&here, shared, value); }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  ~Semaphore() { ::sem_destroy(&here); }
};

FIBER_TEST_CASE("semaphore waits in a posix::Scope return the same results as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    Semaphore semaphore(1);
    note(log, ::sem_wait(&semaphore.here));
    for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
      for (const timespec& time :
           {moment(clock, 1), moment(clock, -1000), timespec{-1, 0}, timespec{0, 1'000'000'000}}) {
        if (clock == CLOCK_REALTIME) note(log, ::sem_timedwait(&semaphore.here, &time));
        note(log, ::sem_clockwait(&semaphore.here, clock, &time));
        note(log, ::sem_post(&semaphore.here));
        note(log, ::sem_clockwait(&semaphore.here, clock, &time));
        note(log, ::sem_trywait(&semaphore.here));
      }
    }
    const timespec soon = moment(CLOCK_MONOTONIC, 1);
    note(log, ::sem_clockwait(&semaphore.here, 99, &soon));
  });
}

// Without a monitor, a wait that blocked the worker would last forever.
FIBER_TEST_CASE_WITH("fibers of one worker wait for each other with POSIX semaphores",
                     {.workers = {1}}) {
  if (!has_hooks()) return;
  Semaphore ping(0);
  Semaphore pong(0);
  weft::WaitGroup group;
  for (int i = 0; i < 10; ++i) {
    group.go(weft::posix::in_scope([&] {
      CHECK(::sem_wait(&ping.here) == 0);
      CHECK(::sem_post(&pong.here) == 0);
    }));
  }
  for (int i = 0; i < 10; ++i) {
    group.go(weft::posix::in_scope([&] {
      CHECK(::sem_post(&ping.here) == 0);
      CHECK(::sem_wait(&pong.here) == 0);
    }));
  }
  group.wait();
}

FIBER_TEST_CASE("each sem_post() admits exactly one fiber or thread") {
  if (!has_hooks()) return;
  Semaphore work(0);
  Semaphore done(0);
  constexpr int kRounds = 200;
  constexpr int kFibers = 10;
  const auto serve = [&] {
    for (int i = 0; i < kRounds; ++i) {
      CHECK(::sem_wait(&work.here) == 0);
      CHECK(::sem_post(&done.here) == 0);
    }
  };
  weft::WaitGroup group;
  for (int i = 0; i < kFibers; ++i) {
    group.go([&] {
      const Scope scope;
      serve();
    });
    group.go([&] {
      const Scope scope;
      for (int round = 0; round < kRounds; ++round) {
        CHECK(::sem_post(&work.here) == 0);
        const timespec minute = moment(CLOCK_REALTIME, 60'000);
        CHECK(::sem_timedwait(&done.here, &minute) == 0);
      }
    });
  }
  std::thread server(serve);
  std::thread poster([&] {
    for (int i = 0; i < kRounds; ++i) CHECK(::sem_post(&work.here) == 0);
  });
  group.wait();
  server.join();
  poster.join();
  int value = 0;
  CHECK(::sem_getvalue(&done.here, &value) == 0);
  CHECK(value == kRounds);
}

sem_t* posted_by_handler = nullptr;

// The handler stays installed, because the last signal may be delivered late.
FIBER_TEST_CASE("a sem_post() in a signal handler wakes a fiber") {
  if (!has_hooks()) return;
  static Semaphore semaphore(0);
  posted_by_handler = &semaphore.here;
  struct sigaction post {};
  post.sa_handler = [](int) { (void)::sem_post(posted_by_handler); };
  post.sa_flags = SA_RESTART;
  CHECK(::sigaction(SIGUSR2, &post, nullptr) == 0);
  auto waiter = weft::spawn([&] {
    const Scope scope;
    for (int i = 0; i < 20; ++i) CHECK(::sem_wait(&semaphore.here) == 0);
  });
  for (int i = 0; i < 20; ++i) {
    CHECK(::raise(SIGUSR2) == 0);
    weft::this_fiber::yield();
  }
  waiter.join();
}

FIBER_TEST_CASE(
    "waiting for a process-shared semaphore blocks the worker and is counted as a blocking call") {
  if (!has_hooks()) return;
  const Scope scope;
  Semaphore shared(0, 1);
  const std::uint64_t before = times_blocked("sem_timedwait", "shared by processes");
  const timespec soon = moment(CLOCK_REALTIME, 1);
  CHECK(::sem_timedwait(&shared.here, &soon) == -1);
  CHECK(errno == ETIMEDOUT);
  CHECK(times_blocked("sem_timedwait", "shared by processes") == before + 1);
}

FIBER_TEST_CASE(
    "the end of a context ends timed waits for a POSIX semaphore, but not untimed waits") {
  if (!has_hooks()) return;
  const Scope scope;
  weft::Context context(weft::Deadline::after(1ms));
  const weft::ContextScope limited(context);
  Semaphore semaphore(0);
  const timespec minute = moment(CLOCK_REALTIME, 60'000);
  CHECK(::sem_timedwait(&semaphore.here, &minute) == -1);
  CHECK(errno == ETIMEDOUT);
  auto poster = weft::spawn([&] { CHECK(::sem_post(&semaphore.here) == 0); });
  CHECK(::sem_wait(&semaphore.here) == 0);
  poster.join();
}

TEST_SUITE_END();

}  // namespace
