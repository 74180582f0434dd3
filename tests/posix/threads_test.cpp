// Tests thread state on fibers in a Scope: errno, locks and keys.
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <thread>
#include <weft/live_page.hpp>
#include <weft/metrics.hpp>
#include <weft/pool.hpp>
#include <weft/wait_group.hpp>

#include "tests/posix/both_ways.hpp"

namespace {

using namespace std::chrono_literals;
using weft::posix::Scope;
using weft::test::has_hooks;
using weft::test::kSlowdown;
using weft::test::times_blocked;

TEST_SUITE_BEGIN("posix/threads");

// In builds with random decisions, the runtime sometimes sleeps, perhaps while the fiber holds a
// SpinLock. If the fiber parked there, another fiber would spin for that lock on the thread that
// the first fiber needs.
FIBER_TEST_CASE("the runtime's own sleeps park no fiber, even in a posix::Scope") {
  if (!has_hooks()) return;
  const Scope scope;
  const auto counted = [] { return times_blocked("nanosleep", "a NoSwitch scope"); };
  const std::uint64_t before = counted();
  weft::WaitGroup group;
  {
    const weft::this_fiber::NoSwitch no_switch;  // A call that would park is counted instead.
    for (int i = 0; i < 2000; ++i) group.go([] {});
  }
  CHECK(counted() == before);
  group.wait();
}

// Some libraries take the address of errno once and read it after the call.
FIBER_TEST_CASE(
    "after each of 10 000 parks, errno has the value that the fiber's own call has set") {
  if (!has_hooks()) return;
  std::atomic<int> wrong{0};
  const int rounds = 250 / static_cast<int>(kSlowdown);
  weft::WaitGroup group;
  for (int i = 0; i < 40; ++i) {
    group.go([&, i] {
      const Scope scope;
      std::array<int, 2> ends{};
      CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
      const timeval limit{0, 200};
      CHECK(::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
      int* address = &errno;
      for (int round = 0; round < rounds; ++round) {
        char byte = 0;
        *address = 0;
        const bool expects_bad = (round + i) % 8 == 0;
        if (expects_bad) ::usleep(1);
        const ssize_t got = ::recv(expects_bad ? -1 : ends[0], &byte, 1, 0);
        if (got != -1 || *address != (expects_bad ? EBADF : EAGAIN) || address != &errno) ++wrong;
      }
      for (const int end : ends) ::close(end);
    });
  }
  group.wait();
  CHECK(wrong == 0);
}

FIBER_TEST_CASE(
    "a recursive mutex never has two owners when fibers hold the mutex during blocking calls") {
  if (!has_hooks()) return;
  std::recursive_mutex mutex;
  std::atomic<int> inside{0};
  std::atomic<int> two_owners{0};
  const std::uint64_t before = times_blocked("usleep", "a pthread lock is held");
  weft::WaitGroup group;
  constexpr int kSections = 200;
  for (int i = 0; i < kSections; ++i) {
    group.go([&] {
      const Scope scope;
      const std::lock_guard outer(mutex);
      const std::lock_guard inner(mutex);
      two_owners += inside.fetch_add(1) == 0 ? 0 : 1;
      ::usleep(10);
      inside.fetch_sub(1);
    });
  }
  group.wait();
  CHECK(two_owners == 0);
  CHECK(times_blocked("usleep", "a pthread lock is held") - before == kSections);
}

FIBER_TEST_CASE(
    "a call counts as blocking if its fiber holds a pthread lock or is inside pthread_once()") {
  if (!has_hooks()) return;
  const Scope scope;
  std::mutex mutex;
  std::timed_mutex timed;
  std::shared_mutex shared;
  std::once_flag once;
  std::array<int, 2> ends{};
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  const timeval limit{0, 100};
  CHECK(::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
  const auto blocks = [&] {
    const std::uint64_t before = times_blocked("recv", "a pthread lock is held");
    char byte = 0;
    CHECK(::recv(ends[0], &byte, 1, 0) == -1);
    CHECK(errno == EAGAIN);
    return times_blocked("recv", "a pthread lock is held") != before;
  };
  CHECK(!blocks());
  mutex.lock();
  CHECK(blocks());
  mutex.unlock();
  CHECK(mutex.try_lock());
  CHECK(blocks());
  mutex.unlock();
  CHECK(timed.try_lock_for(std::chrono::seconds(1)));
  CHECK(blocks());
  timed.unlock();
  shared.lock_shared();
  CHECK(blocks());
  shared.unlock_shared();
  shared.lock();
  CHECK(blocks());
  shared.unlock();
  std::call_once(once, [&] { CHECK(blocks()); });
  CHECK(!blocks());
  {
    const weft::this_fiber::NoSwitch here;
    char byte = 0;
    CHECK(::recv(ends[0], &byte, 1, 0) == -1);
  }
  CHECK(times_blocked("recv", "a NoSwitch scope") > 0);
  for (const int end : ends) ::close(end);
}

FIBER_TEST_CASE(
    "posix::report() lists the caller, the count and the duration of a call that blocked") {
  if (!has_hooks()) return;
  const Scope scope;
  std::mutex mutex;
  {
    const std::lock_guard lock(mutex);
    ::usleep(2000);
  }
  const auto blocked = weft::posix::report();
  CHECK(std::ranges::is_sorted(blocked,
                               [](const auto& a, const auto& b) { return a.total > b.total; }));
  const auto row = std::ranges::find_if(blocked, [](const auto& one) {
    return one.call == "usleep" && one.longest >= std::chrono::milliseconds(2);
  });
  CHECK(row != blocked.end());
  if (row == blocked.end()) return;
  CHECK(row->count >= 1);
  CHECK(row->total >= row->longest);
  CHECK(!row->from.empty());
}

// Reads a line by stdio and a byte by a raw system call. The library intercepts neither.
[[gnu::noinline]] void read_line(std::FILE* file) {
  std::array<char, 8> line{};
  CHECK(std::fgets(line.data(), line.size(), file) != nullptr);
  asm volatile("" : : "r"(line.data()) : "memory");
}

// The monitor finds a call only after a certain time; the writer waits that long.
FIBER_TEST_CASE_WITH("posix::report() lists blocking calls that the library does not intercept",
                     {.workers = {2}, .options = {.stall = 1ms}, .monitored = true}) {
  if (!has_hooks()) return;
  // Returns the sum of all rows of the call, because other callers may have their own rows.
  const auto find = [](const char* call) {
    weft::posix::BlockedCalls sum;
    for (const auto& row : weft::posix::report()) {
      if (row.reason != weft::posix::kNotIntercepted) continue;
      if (row.call != call && !weft::test::kSanitized) continue;
      sum.count += row.count;
      sum.total += row.total;
      sum.longest = std::max(sum.longest, row.longest);
      sum.from = row.from;
    }
    return sum;
  };
  for (const char* call : {"fgets", "syscall"}) {
    std::array<int, 2> ends{};
    CHECK(::pipe(ends.data()) == 0);
    std::FILE* file = ::fdopen(ends[0], "r");
    const std::uint64_t before = find(call).count;
    auto reader = weft::spawn(weft::posix::in_scope([&] {
      char byte = 0;
      if (*call == 'f') read_line(file);
      if (*call == 's') CHECK(::syscall(SYS_read, ends[0], &byte, 1) == 1);
    }));
    std::thread([&] {
      for (int i = 0; find(call).count == before && i < 20'000; ++i) {
        std::this_thread::sleep_for(1ms);
      }
      CHECK(::write(ends[1], "x\n", 2) == 2);
    }).join();
    reader.join();
    const weft::posix::BlockedCalls row = find(call);
    CHECK(row.count > before);
    CHECK(row.total >= 1ms);
    CHECK(row.longest >= 1ms);
    if (!weft::test::kSanitized) CHECK(row.from != "unknown");
    (void)std::fclose(file);
    ::close(ends[1]);
  }
}

FIBER_TEST_CASE("the metrics contain the calls that posix::report() lists") {
  if (!has_hooks()) return;
  const Scope scope;
  {
    const weft::this_fiber::NoSwitch here;
    ::usleep(1);
  }
  std::ostringstream metrics;
  weft::metrics::write_prometheus(metrics);
  const std::string labels = "{call=\"usleep\",reason=\"a NoSwitch scope\",from=\"";
  CHECK(metrics.str().find("weft_posix_blocked_calls_total" + labels) != std::string::npos);
  CHECK(metrics.str().find("weft_posix_blocked_seconds_total" + labels) != std::string::npos);
  const std::string data = weft::live::answer("/data.json").body;
  CHECK(data.find("weft_posix_blocked_calls_total") != std::string::npos);
}

FIBER_TEST_CASE(
    "in_scope() opens a separate posix::Scope for a fiber and for each task of a pool") {
  if (!has_hooks()) return;
  pthread_key_t key{};
  CHECK(::pthread_key_create(&key, nullptr) == 0);
  auto sees_own_values = weft::posix::in_scope([key](int& value) {
    const bool was_empty = ::pthread_getspecific(key) == nullptr;
    return ::pthread_setspecific(key, &value) == 0 && was_empty;
  });
  int value = 0;
  std::atomic<int> right{0};
  auto task = [&, call = sees_own_values]() mutable { right += call(value) ? 1 : 0; };
  weft::spawn(task).join();
  weft::spawn(weft::posix::in_scope([&] { right += weft::this_fiber::is_fiber() ? 1 : 0; })).join();
  weft::FiberPool pool({.capacity = 1});  // One worker fiber for all tasks.
  (void)pool.submit(task);
  (void)pool.submit(task);
  CHECK(pool.async(weft::posix::in_scope([key] { return ::pthread_getspecific(key); })).get() ==
        nullptr);
  pool.close(weft::Close::drain);
  pool.join();
  CHECK(right == 4);
  CHECK(::pthread_key_delete(key) == 0);
}

FIBER_TEST_CASE(
    "a fiber has its own pthread key values, which are destroyed when the fiber's posix::Scope "
    "ends") {
  if (!has_hooks()) return;
  static std::atomic<int> destroyed{0};
  destroyed = 0;
  pthread_key_t key{};
  CHECK(::pthread_key_create(&key, [](void* value) {
          CHECK(*static_cast<int*>(value) >= 0);
          delete static_cast<int*>(value);
          ++destroyed;
        }) == 0);
  weft::WaitGroup group;
  constexpr int kFibers = 50;
  for (int i = 0; i < kFibers; ++i) {
    group.go([&, i] {
      const Scope scope;
      CHECK(::pthread_getspecific(key) == nullptr);
      CHECK(::pthread_setspecific(key, new int(i)) == 0);
      {
        const Scope inner;
        ::usleep(1);
      }
      CHECK(*static_cast<int*>(::pthread_getspecific(key)) == i);
    });
  }
  group.wait();
  CHECK(destroyed == kFibers);
  const Scope scope;
  CHECK(::pthread_getspecific(key) == nullptr);
  int other = 1;
  CHECK(::pthread_setspecific(key, &other) == 0);
  CHECK(::pthread_key_delete(key) == 0);
  CHECK(::pthread_setspecific(key, &other) == EINVAL);
  pthread_key_t next{};
  CHECK(::pthread_key_create(&next, nullptr) == 0);
  CHECK(::pthread_getspecific(next) == nullptr);
  CHECK(::pthread_key_delete(next) == 0);
}

TEST_CASE("a posix::Scope has no effect on a plain thread") {
  const Scope scope;
  pthread_key_t key{};
  CHECK(::pthread_key_create(&key, nullptr) == 0);
  CHECK(::pthread_setspecific(key, &key) == 0);
  { const Scope inner; }
  CHECK(::pthread_getspecific(key) == &key);
  CHECK(::pthread_key_delete(key) == 0);
}

TEST_SUITE_END();

}  // namespace
