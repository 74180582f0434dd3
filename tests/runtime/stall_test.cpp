// Tests the monitor's reports of a fiber that keeps its worker.
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using Kind = weft::StallReport::Kind;

// Marks a function, to check whether an address is in it. It is the return address of a call in the
// function, at most a few dozen bytes from the checked address.
std::atomic<const void*> inner_site{nullptr};
std::atomic<bool> stop{false};

bool is_near(const void* address, const void* site) {
  const auto a = reinterpret_cast<std::intptr_t>(address);
  const auto b = reinterpret_cast<std::intptr_t>(site);
  return a - b < 256 && b - a < 256;
}

// Returns its return address, which is a place in the caller.
[[gnu::noinline]] const void* here() { return __builtin_return_address(0); }

[[gnu::noinline]] void compute_until_told() {
  inner_site = here();
  std::uint64_t sum = 0;
  while (!stop) {
    for (std::uint64_t i = 0; i < 1000; ++i) sum = sum * 31 + i;
    asm volatile("" : "+r"(sum));
  }
}

// Has an aligned frame, which compilers describe with an expression in the unwind table.
[[gnu::noinline]] void compute_in_odd_frame() {
  alignas(64) std::array<char, 256> room{};
  asm volatile("" : : "r"(room.data()) : "memory");
  compute_until_told();
  asm volatile("" : : "r"(room.data()) : "memory");
}

[[gnu::noinline]] void allocate_until_told() {
  inner_site = here();
  while (!stop) {
    std::vector<std::string> strings(50, std::string(100, 'x'));
    asm volatile("" : : "r"(strings.data()) : "memory");
  }
}

[[gnu::noinline]] void block_in_read(int descriptor) {
  inner_site = here();
  char byte = 0;
  CHECK(::read(descriptor, &byte, 1) == 1);
  asm volatile("" : : : "memory");
}

// Stores the text of a report.
struct Heard {
  std::mutex mutex;
  Kind kind = Kind::busy;
  std::string text;
  std::vector<const void*> calls;
  std::atomic<int> reports{0};

  void hear(const weft::StallReport& report) {
    const std::lock_guard lock(mutex);
    kind = report.kind;
    text = report.text;
    calls.assign(report.calls.begin(), report.calls.end());
    ++reports;
  }
  bool names(const void* site) {
    const std::lock_guard lock(mutex);
    return std::ranges::any_of(calls, [&](const void* call) { return is_near(call, site); });
  }
  std::string all() {
    const std::lock_guard lock(mutex);
    return text;
  }
};

weft::RuntimeOptions options_for(Heard& heard, unsigned workers) {
  weft::RuntimeOptions options;
  options.workers = workers;
  options.on_stall = [&heard](const weft::StallReport& report) { heard.hear(report); };
  return options;
}

// Repeats the stall in new runtimes until a report names its calls. On a busy machine, a report may
// have other calls or none.
template <class Keep, class End>
void expect_calls(unsigned workers, Keep keep, End end) {
  for (bool named = false; !named;) {
    Heard heard;
    stop = false;
    inner_site = nullptr;
    weft::Runtime runtime(options_for(heard, workers));
    runtime.run([&] {
      weft::go({.name = "keeper"}, keep);
      // Runs on a plain thread, because the only worker is busy.
      std::thread waiter([&] {
        while (heard.reports == 0) std::this_thread::sleep_for(1ms);
        stop = true;
        end();
      });
      while (!stop) weft::this_fiber::sleep_for(1ms);
      waiter.join();
    });
    CHECK(heard.all().find("worker ") != std::string::npos);
    named = weft::test::kSanitized || heard.names(inner_site);
    if (named && !weft::test::kSanitized) {
      CHECK(heard.all().find("\n    at ") != std::string::npos);
      CHECK(heard.calls.size() <= 24);
    }
  }
}

TEST_SUITE_BEGIN("runtime/stall");

TEST_CASE("the stall report of a computing fiber shows the fiber's current call stack") {
  for (const unsigned workers : {1U, 2U, 8U}) {
    const weft::test::TestGuard guard("the calls of a fiber that computes");
    expect_calls(
        workers, [] { compute_until_told(); }, [] {});
    expect_calls(
        workers, [] { compute_in_odd_frame(); }, [] {});
  }
}

TEST_CASE("the stall report of a fiber that is mostly in malloc() shows the fiber's call stack") {
  const weft::test::TestGuard guard("the calls of a fiber in malloc");
  for (int i = 0; i < 5; ++i)
    expect_calls(
        2, [] { allocate_until_told(); }, [] {});
}

TEST_CASE(
    "the stall report of a blocked fiber shows the fiber's call stack without interrupting its "
    "system call") {
  const weft::test::TestGuard guard("the calls of a fiber that blocks");
  int pipe_ends[2] = {};
  REQUIRE(::pipe(pipe_ends) == 0);
  expect_calls(
      2, [&] { block_in_read(pipe_ends[0]); }, [&] { CHECK(::write(pipe_ends[1], "x", 1) == 1); });
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

TEST_CASE("a stall report about a fiber in nanosleep() does not interrupt the sleep") {
  const weft::test::TestGuard guard("a sleeper is looked at");
  // Any signal with a handler ends nanosleep early. A signal may come if the thread was kept from
  // running for so long that it has not entered the call. So one undisturbed call suffices.
  for (bool undisturbed = false; !undisturbed;) {
    Heard heard;
    weft::Runtime runtime(options_for(heard, 2));
    const bool slept = runtime.run([] {
      const timespec pause{0, 150'000'000};
      return ::nanosleep(&pause, nullptr) == 0;
    });
    undisturbed = slept && heard.reports > 0 && (weft::test::kSanitized || !heard.calls.empty());
  }
}

void pin_to(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  CHECK(::sched_setaffinity(0, sizeof only, &only) == 0);
}

// From now on, the calling thread runs only on its present processor, and only while that processor
// is idle.
int step_back() {
  const int processor = ::sched_getcpu();
  pin_to(processor);
  const sched_param none{};
  CHECK(::sched_setscheduler(0, SCHED_IDLE, &none) == 0);
  return processor;
}

// If the worker counts as blocked, no stall report shows that it computes, and the case hangs.
TEST_CASE("a fiber is not reported as blocked when its thread is only waiting for a processor") {
  const weft::test::TestGuard guard("a thread without a processor");
  std::atomic<int> processor{-1};
  stop = false;
  std::thread other([&] {
    while (processor < 0) std::this_thread::sleep_for(1ms);
    pin_to(processor);
    while (!stop) continue;
  });
  weft::RuntimeOptions options;
  options.workers = 1;
  options.max_spare_workers = 0;  // The fiber stays with its thread.
  options.on_stall = [](const weft::StallReport& report) {
    if (report.kind == Kind::busy) stop = true;
  };
  weft::Runtime runtime(options);
  runtime.run([&] {
    processor = step_back();
    // The case repeats, because each stall is reported once, and something else may have delayed
    // the worker.
    while (!stop) {
      const auto end = std::chrono::steady_clock::now() + 500ms;
      while (!stop && std::chrono::steady_clock::now() < end) continue;
      weft::this_fiber::sleep_for(1ms);
    }
  });
  other.join();
}

// Computes for about the time of a stall, so that the monitor requests its calls at that moment,
// and then waits.
void compute_and_poll(std::chrono::steady_clock::time_point end, std::atomic<int>& interrupted) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  CHECK(epoll >= 0);
  for (unsigned round = 0; std::chrono::steady_clock::now() < end; ++round) {
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::microseconds(9'000 + round % 40 * 50);
    while (std::chrono::steady_clock::now() < until) continue;
    epoll_event event{};
    const int ready = round % 2 == 0 ? poll(nullptr, 0, 1) : epoll_wait(epoll, &event, 1, 1);
    if (ready < 0 && errno == EINTR) ++interrupted;
    weft::this_fiber::yield();
  }
  ::close(epoll);
}

TEST_CASE("a stall report does not interrupt poll() and epoll_wait()") {
  const weft::test::TestGuard guard("poll() and epoll_wait() end by themselves");
  std::atomic<int> interrupted{0};
  weft::RuntimeOptions options;
  options.workers = 2;
  options.on_stall = [](const weft::StallReport&) {};
  weft::Runtime runtime(options);
  runtime.run([&] {
    const auto end = std::chrono::steady_clock::now() + 2s;
    // The computation counts as a stall, because other fibers wait.
    for (int i = 0; i < 50; ++i) {
      weft::go([end] {
        while (std::chrono::steady_clock::now() < end) weft::this_fiber::sleep_for(5ms);
      });
    }
    auto other = weft::spawn([&] { compute_and_poll(end, interrupted); });
    compute_and_poll(end, interrupted);
    other.join();
  });
  CHECK(interrupted == 0);
}

void handle_urgent(int) {}

TEST_CASE(
    "no stall signal is sent if the program handles the signal or disables "
    "RuntimeOptions::stall_calls") {
  const weft::test::TestGuard guard("no signal is sent");
  struct sigaction mine {};
  struct sigaction before {};
  mine.sa_handler = &handle_urgent;
  REQUIRE(sigaction(SIGURG, &mine, &before) == 0);
  for (const bool wanted : {true, false}) {
    Heard heard;
    stop = false;
    auto options = options_for(heard, 2);
    options.stall_calls = wanted;
    weft::Runtime runtime(options);
    runtime.run([&] {
      while (heard.reports == 0) continue;
    });
    CHECK(heard.reports >= 1);
    if (!wanted) CHECK(heard.calls.empty());
    struct sigaction current {};
    REQUIRE(sigaction(SIGURG, nullptr, &current) == 0);
    if (wanted) CHECK((current.sa_handler == &handle_urgent));
    REQUIRE(sigaction(SIGURG, &before, nullptr) == 0);
  }
}

TEST_SUITE_END();

}  // namespace
