// Tests that a fiber that continues on another thread sees no data of the old thread.
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace std::chrono_literals;

// Reads the thread's id anew, as users must, because the compiler treats it as constant.
[[gnu::noinline]] std::thread::id thread_now() {
  asm volatile("" : : : "memory");
  return std::this_thread::get_id();
}
[[gnu::noinline]] int errno_now() {
  asm volatile("" : : : "memory");
  return errno;
}
[[gnu::noinline]] void set_errno(int value) {
  asm volatile("" : : : "memory");
  errno = value;
}

TEST_SUITE_BEGIN("scheduler/migration");

// A plain thread starts the turns of the fibers, in order. Each fiber keeps its worker busy until
// the next fiber has begun its turn, so the next fiber runs on another worker. As the number of
// fibers is odd, with two workers each fiber changes its worker at every turn. There is no monitor,
// because spare workers would add threads.
THREAD_TEST_CASE_WITH(
    "a fiber keeps its id, its name and its errno on every thread that runs the fiber",
    {.workers = {2, 8}, .options = {.monitor = false}}) {
  constexpr int kFibers = 7;
  constexpr int kTurns = 20 * kFibers;
  std::atomic<int> moves{0};
  std::atomic<int> begun{0};
  std::vector<std::unique_ptr<weft::Semaphore>> turns;
  std::vector<weft::JoinHandle<void>> fibers;
  for (int number = 0; number < kFibers; ++number) {
    turns.push_back(std::make_unique<weft::Semaphore>(0));
    weft::Semaphore& turn = *turns.back();
    const std::string name = "fiber " + std::to_string(number);
    fibers.push_back(weft::spawn({.name = name}, [&turn, &moves, &begun, number, name] {
      const std::uint64_t id = weft::this_fiber::id();
      std::thread::id thread = thread_now();
      for (int next = number + 1; next <= kTurns; next += kFibers) {
        set_errno(number);
        turn.acquire();
        if (errno_now() != number) FAIL_CHECK("errno is not that of fiber ", number);
        if (weft::this_fiber::id() != id) FAIL_CHECK("another id");
        if (weft::this_fiber::name() != name) FAIL_CHECK("another name");
        const std::thread::id now = thread_now();
        if (now != thread) moves.fetch_add(1);
        thread = now;
        begun.store(next);
        while (begun.load() == next && next < kTurns) std::this_thread::yield();
      }
    }));
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    turns[static_cast<std::size_t>(turn % kFibers)]->release();
    while (begun.load() == turn) std::this_thread::yield();
  }
  for (auto& fiber : fibers) fiber.join();
  if (runtime.workers() == 2) CHECK(moves.load() >= kTurns - kFibers);
}

// There is no monitor, because spare workers would add threads.
FIBER_TEST_CASE_WITH("the thread that a fiber reports is the thread that runs the fiber",
                     {.options = {.monitor = false}}) {
  // Reads the thread's id by a system call, which the compiler cannot treat as constant.
  std::vector<weft::JoinHandle<void>> fibers;
  std::mutex mutex;
  std::map<std::thread::id, pthread_t> known;
  for (int i = 0; i < 20; ++i) {
    fibers.push_back(weft::spawn([&] {
      for (int round = 0; round < 200; ++round) {
        const std::thread::id id = thread_now();
        bool same = false;
        {
          // It is not held over a switch, so a std::mutex is sufficient.
          const std::lock_guard lock(mutex);
          same =
              pthread_equal(known.emplace(id, pthread_self()).first->second, pthread_self()) != 0;
        }
        if (!same) FAIL_CHECK("two threads in one");
        weft::this_fiber::yield();
      }
    }));
  }
  for (auto& fiber : fibers) fiber.join();
  CHECK(known.size() <= runtime.workers());
}

FIBER_TEST_CASE("a caught exception moves to another thread with its fiber") {
  std::vector<weft::JoinHandle<void>> fibers;
  for (int number = 0; number < 20; ++number) {
    fibers.push_back(weft::spawn([number] {
      const std::string mine = std::to_string(number);
      for (int round = 0; round < 50; ++round) {
        try {
          throw std::runtime_error(mine);
        } catch (...) {
          for (int i = 0; i < 3; ++i) weft::this_fiber::yield();
          try {
            throw;
          } catch (const std::runtime_error& caught) {
            weft::this_fiber::yield();
            if (caught.what() != mine) FAIL_CHECK(caught.what(), " instead of ", mine);
          }
        }
        if (std::current_exception() != nullptr) FAIL_CHECK("somebody else's exception");
        if (std::uncaught_exceptions() != 0) FAIL_CHECK("uncaught exceptions");
      }
    }));
  }
}

FIBER_TEST_CASE(
    "std::uncaught_exceptions() returns 1 in a fiber that parks while an exception unwinds its "
    "stack") {
  struct ParkWhileUnwinding {
    ~ParkWhileUnwinding() {
      for (int i = 0; i < 3; ++i) {
        if (std::uncaught_exceptions() != 1) FAIL_CHECK("not one exception");
        weft::this_fiber::sleep_for(1us);
      }
    }
  };
  std::vector<weft::JoinHandle<void>> fibers;
  for (int number = 0; number < 20; ++number) {
    fibers.push_back(weft::spawn([] {
      for (int round = 0; round < 20; ++round) {
        try {
          const ParkWhileUnwinding parks;
          throw 1;
        } catch (int) {
        }
        if (std::uncaught_exceptions() != 0) FAIL_CHECK("uncaught exceptions");
      }
    }));
  }
}

THREAD_TEST_CASE("this_fiber functions report no fiber on a plain thread") {
  CHECK(!weft::this_fiber::is_fiber());
  CHECK(weft::this_fiber::id() == 0);
  CHECK(weft::this_fiber::name().empty());
  weft::this_fiber::set_name("ignored");
  CHECK(weft::this_fiber::name().empty());
  weft::this_fiber::yield();
}

TEST_SUITE_END();

}  // namespace
