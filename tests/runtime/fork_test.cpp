// Tests what a child of fork_quietly() may do, and the end of a process with live fibers.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <weft/blocking.hpp>
#include <weft/blocking_group.hpp>
#include <weft/channel.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/metrics.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "tests/support/deadlock.hpp"
#include "tests/support/death_test.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Runtime;
using weft::test::kSlowdown;

// A sanitizer does not hold its own locks during a fork: if another thread is just starting, the
// child keeps that thread's lock locked forever.
pid_t fork_quietly() {
  if (weft::test::kSanitized) std::this_thread::sleep_for(100ms);
  return fork();
}

// Returns the exit status of a child that runs the body, or the negated number of the signal that
// ended the child.
template <class Body>
int status_of_child(Body body) {
  const pid_t child = fork_quietly();
  if (child == 0) {
    alarm(20 * kSlowdown);  // Ends a child that hangs.
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int use_a_new_runtime() {
  return weft::run({.workers = 2}, [] { return weft::spawn([] { return 41; }).join() + 1; });
}

TEST_SUITE_BEGIN("runtime/fork");

TEST_CASE("the child of a fork may destroy its parent's runtime and make another runtime") {
  const weft::test::TestGuard guard("child");
  weft::Event never;
  auto runtime =
      std::make_unique<Runtime>(weft::RuntimeOptions{.workers = 2, .dump_signal = SIGUSR2});
  runtime->go([&] { never.wait(); });
  CHECK(status_of_child([&] { runtime.reset(); }) == 0);
  CHECK(status_of_child([&] {
          if (use_a_new_runtime() != 42) _exit(3);
          runtime.reset();
          weft::run({.dump_signal = SIGUSR1}, [] { (void)raise(SIGUSR1); });
        }) == 0);
  never.set();
}

TEST_CASE("a fiber may fork, and the child may make any call that a plain thread may make") {
  const weft::test::TestGuard guard("a fiber forks");
  weft::run({.workers = 2}, [] {
    CHECK(status_of_child([] {
            if (weft::this_fiber::is_fiber()) _exit(3);
            weft::this_fiber::yield();
            if (use_a_new_runtime() != 42) _exit(4);
          }) == 0);
    // The memory of the parent's other threads leaks here, and a sanitizer would report it.
    if (!weft::test::kSanitized) CHECK(status_of_child([] { std::exit(5); }) == 5);
    weft::this_fiber::yield();
  });
}

// A runtime's end visits all pools of its process, and of no other process.
TEST_CASE("pools in the child of a fork are independent of the parent process's pools") {
  // The parent's threads allocate memory meanwhile.
  if (weft::test::kSanitized) {
    return weft::test::skip("a sanitizer does not hold the allocator's locks during a fork");
  }
  const weft::test::TestGuard guard("pools in a child");
  std::atomic<bool> over{false};
  Runtime parents({.workers = 2});
  parents.go([&] {
    weft::FiberPool lasting({.capacity = 4, .queue_capacity = 100});
    while (!over.load()) {
      weft::FiberPool passing({.capacity = 2, .queue_capacity = 10});
      for (int i = 0; i < 10; ++i) {
        lasting.go([] {});
        passing.go([] {});
      }
    }
  });
  for (int i = 0; i < 20; ++i) {
    CHECK(status_of_child([] {
            const int sum = weft::run({.workers = 2}, [] {
              weft::FiberPool pool({.capacity = 2});
              return pool.run([] { return 41; }) + 1;
            });
            if (sum != 42) _exit(3);
          }) == 0);
  }
  over = true;
}

TEST_CASE("the child of a fork has a default pool of its own") {
  const weft::test::TestGuard guard("the default pool of a child");
  weft::Event goes_on;
  Runtime parents({.workers = 2});
  parents.run([&] {
    const std::size_t capacity = weft::default_pool().capacity();
    for (std::size_t i = 0; i < capacity; ++i) weft::default_pool().go([&] { goes_on.wait(); });
    CHECK(status_of_child([] {
            const auto add = [] { return weft::default_pool().run([] { return 41; }) + 1; };
            if (weft::run({.workers = 2}, add) != 42) _exit(3);
          }) == 0);
    goes_on.set();
  });
}

// Readings hold the lock of the registry while they take locks of helper threads, and so do forks.
TEST_CASE("a fork and a call that reads metrics cause no deadlock when they run at the same time") {
  if (weft::test::kSanitized) {
    return weft::test::skip("a sanitizer does not hold the allocator's locks during a fork");
  }
  const weft::test::TestGuard guard("forks and readings");
  std::atomic<bool> over{false};
  const Runtime parents({.workers = 2});
  std::thread reader([&] {
    while (!over.load()) (void)weft::metrics::read();
  });
  for (int i = 0; i < 200; ++i) {
    CHECK(status_of_child([] { (void)weft::metrics::read(); }) == 0);
  }
  over = true;
  reader.join();
}

// Returns how often the workers of the newest runtime have searched for a deadlock.
std::uint64_t looks() {
  std::uint64_t count = 0;
  (void)weft::scheduler::visit_registry(weft::Deadline::never(),
                                        [&](weft::scheduler::Scheduler& scheduler) {
                                          count = scheduler.shared().deadlock_watch().looks();
                                        });
  return count;
}

// A thread that was parked when the parent forked does not exist in the child, and must not count.
TEST_CASE("a runtime in the child of a fork reports no false deadlock") {
  if (!weft::test::kDeadlocksAreFound) return;
  const weft::test::TestGuard guard("no false deadlock");
  weft::Event stop;
  Runtime parents({.workers = 2});
  std::thread parked([&] { parents.run([&] { stop.wait(); }); });
  while (parents.stats().spawned == 0) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);  // Lets the thread park; if it has not, the case tests less.
  CHECK(status_of_child([] {
          const weft::test::WithoutSignalHandlers bare;
          int reports = 0;
          Runtime runtime({.workers = 2, .on_deadlock = [&](std::string_view) { ++reports; }});
          weft::Channel<int> channel;
          auto receiver = weft::spawn([&] { (void)channel.receive(); });
          // If the fiber was late for the first search, the second would report a deadlock.
          while (looks() < 2) std::this_thread::sleep_for(10ms);
          (void)channel.send(1);
          receiver.join();
          if (reports != 0) _exit(6);
        }) == 0);
  stop.set();
  parked.join();
}

TEST_CASE("exit() in a fiber ends the process, even if the runtime is a static object") {
  if (weft::test::kSanitized) {
    return weft::test::skip("a sanitizer reports what other threads do during exit()");
  }
  const weft::test::TestGuard guard("exit");
  CHECK(status_of_child([] {
          static Runtime runtime({.workers = 2});
          runtime.run([] {
            for (int i = 0; i < 10; ++i) {
              weft::go([] {
                for (;;) weft::this_fiber::yield();
              });
            }
            std::exit(7);
          });
        }) == 7);
  CHECK(status_of_child([] { weft::run({.workers = 2}, [] { std::exit(8); }); }) == 8);
  // Calls exit() on a helper thread, and in a handler on a worker's own stack.
  CHECK(status_of_child([] {
          static Runtime runtime({.workers = 2});
          runtime.run([] { weft::blocking([] { std::exit(9); }); });
        }) == 9);
  CHECK(status_of_child([] {
          const weft::test::WithoutSignalHandlers bare;
          weft::run({.workers = 2, .on_deadlock = [](std::string_view) { std::exit(10); }},
                    [] { weft::Event().wait(); });
        }) == 10);
}

TEST_CASE("the child of a fork has its own threads for a BlockingGroup") {
  const weft::test::TestGuard guard("groups in a child");
  weft::BlockingGroup group;
  const auto call = [&group] { return group.run([] { return 3; }).value; };
  CHECK(call() == 3);  // The call's helper thread, in the parent, is idle now.
  weft::Event goes_on;
  std::thread other([&] { (void)group.run([&] { goes_on.wait(); }); });
  while (group.stats().running == 0) std::this_thread::yield();
  for (int i = 0; i < 3; ++i) CHECK(status_of_child([&] { _exit(call()); }) == 3);
  goes_on.set();
  other.join();
  CHECK(call() == 3);
}

// Returns whether the main thread sleeps in the kernel, as a parked thread does.
bool main_thread_sleeps() {
  std::ifstream file("/proc/self/task/" + std::to_string(getpid()) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.find(") S ") != std::string::npos;
}

DEATH_TEST_CASE("a fiber that returns in the child of its fork ends the child with a report",
                "in the child of a fork, where no worker is: end it by _exit or exec") {
  weft::run({.workers = 1}, [] {
    // The main thread is parked then, and holds no lock that stays locked in the child.
    while (!main_thread_sleeps()) std::this_thread::yield();
    const pid_t child = fork_quietly();
    if (child == 0) return;
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) std::abort();
  });
}

void lock_again(weft::detail::SpinLock& lock) WEFT_NOT_ANALYZED { lock.lock(); }  // The call hangs.

DEATH_TEST_CASE(
    "the child of a fork reports a wait for a lock that another thread held during the fork",
    "deadlock in a forked child: the lock is held by a thread that fork() did not copy") {
  weft::run({.workers = 1}, [] {
    weft::detail::SpinLock lock;
    lock.lock();
    if (fork_quietly() == 0) lock_again(lock);  // The child has no thread to unlock it.
    lock.unlock();
    int status = 0;
    (void)wait(&status);
    if (WIFSIGNALED(status)) std::abort();
  });
}

DEATH_TEST_CASE(
    "using the parent process's runtime in the child of a fork ends the child with a report",
    "a Runtime was used in the child of a fork, which has none of its workers") {
  Runtime runtime({.workers = 1});
  if (fork_quietly() == 0) runtime.go([] {});
  int status = 0;
  (void)wait(&status);
  if (WIFSIGNALED(status)) std::abort();
}

#ifndef WEFT_TEST_TSAN
DEATH_TEST_CASE(
    "fibers that wait forever in a static runtime after main() are reported as a deadlock",
    "'forgotten' is parked: event") {
  static Runtime runtime({.workers = 1});
  static weft::Event never;
  weft::go({.name = "forgotten"}, [] { never.wait(); });
}
#endif

TEST_SUITE_END();

}  // namespace
