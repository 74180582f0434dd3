// Tests faults while runtimes begin and end, fibers are spawned, wait and are dumped.
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/channel.hpp>
#include <weft/context.hpp>
#include <weft/event.hpp>
#include <weft/fiber_local.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/parallel.hpp>
#include <weft/runtime.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>
#include <weft/wait_group.hpp>

#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("faults/runtime");

namespace {

using namespace std::chrono_literals;
using weft::test::Call;
using weft::test::demand;
using weft::test::Fault;
using weft::test::sweep;

// The system calls that a runtime makes when it starts and ends.
constexpr std::initializer_list<Fault> kSystem = {
    {Call::map, ENOMEM},           {Call::unmap, ENOMEM},
    {Call::advise, EINVAL},        {Call::advise_many, ENOSYS},
    {Call::protect, ENOMEM},       {Call::start_thread, EAGAIN},
    {Call::futex_wait, EINTR},     {Call::set_signal_stack, ENOMEM},
    {Call::set_handler, EINVAL},   {Call::create_epoll, EMFILE},
    {Call::control_epoll, ENOMEM}, {Call::wait_epoll, EINTR},
    {Call::create_event, EMFILE},  {Call::open_file, EMFILE},
    {Call::read_file, EINTR},      {Call::write_file, EINTR},
    {Call::close_file, EINTR},     {Call::get_affinity, EINVAL},
};

void begin_and_end() { const weft::Runtime runtime({.workers = 3}); }

TEST_CASE(
    "a runtime either starts or throws the error from its constructor when a system call fails") {
  sweep(&begin_and_end, kSystem);
}
TEST_CASE(
    "a runtime either starts or throws the error from its constructor when an allocation fails") {
  sweep(&begin_and_end, {{Call::allocate, ENOMEM}});
}

void begin_with_dumps() {
  weft::Runtime runtime({.workers = 1, .dump_signal = SIGUSR1});
  runtime.run([] {});
}
TEST_CASE(
    "a runtime with a dump signal either starts or throws from its constructor when a call fails") {
  sweep(&begin_with_dumps, kSystem);
  sweep(&begin_with_dumps, {{Call::allocate, ENOMEM}});
}

// The signal handler writes the list, or a line with the reason, or nothing; the program continues.
void dump_by_signal() {
  weft::Runtime runtime({.workers = 1, .dump_signal = SIGUSR1});
  runtime.run([] {
    (void)raise(SIGUSR1);
    weft::this_fiber::sleep_for(1ms);
  });
}
TEST_CASE("a failed dump does not affect the program that received the dump signal") {
  sweep(&dump_by_signal, {{Call::allocate, ENOMEM},
                          {Call::start_thread, EAGAIN},
                          {Call::write_file, EINTR},
                          {Call::write_file, weft::test::kShort, 100},
                          {Call::read_file, EINTR},
                          {Call::read_file, EIO}});
}

void dump() {
  weft::Runtime runtime({.workers = 2});
  std::ostringstream all;
  runtime.run([&] {
    std::ostringstream text;
    weft::dump_fibers(text);
    runtime.dump(text);
    demand(!text || text.str().find("main") != std::string::npos, "the list names the fiber");
  });
  weft::dump_fibers(all);
}
TEST_CASE("dump() either writes the dump or throws when a system call fails") {
  sweep(&dump, {{Call::allocate, ENOMEM}, {Call::start_thread, EAGAIN}});
}

// Checks the sum of the fibers' results, or throws from the spawn that failed.
void spawn() {
  std::atomic<int> ended{0};
  int spawned = 0;
  {
    weft::Runtime runtime({.workers = 2, .on_exception = [](const std::exception_ptr&) {}});
    runtime.run([&] {
      std::vector<weft::JoinHandle<int>> fibers;
      for (int i = 0; i < 8; ++i) {
        fibers.push_back(weft::spawn([i] { return i; }));
        fibers.push_back(weft::spawn({.stack_size = 256 << 10, .name = "large"}, [i] {
          weft::this_fiber::yield();
          return i;
        }));
        weft::go([&ended, text = std::string(100, 'x')] { ended.fetch_add(text.empty() ? 0 : 1); });
        ++spawned;
      }
      int sum = 0;
      for (auto& fiber : fibers) sum += fiber.join();
      demand(sum == 56, "every fiber returns its number");
    });
    for (int i = 0; i < 8; ++i) {
      runtime.go([&ended] { ended.fetch_add(1); });
      ++spawned;
    }
    (void)runtime.wait_idle_for(10s);
  }
  demand(ended.load() == spawned, "what was spawned has run");
}
TEST_CASE("a spawned fiber runs, or spawn() throws without a leak, when a system call fails") {
  sweep(&spawn, kSystem);
}
TEST_CASE("a spawned fiber runs, or spawn() throws without a leak, when an allocation fails") {
  sweep(&spawn, {{Call::allocate, ENOMEM}});
}

// Parks and wakes more fibers at once than fit into a worker's queue.
void wake_many() {
  constexpr int kFibers = 700;
  weft::Runtime runtime({.workers = 2});
  runtime.run([] {
    weft::Event open;
    std::atomic<int> through{0};
    weft::WaitGroup all;
    const auto wait = [&] {
      open.wait();
      through.fetch_add(1);
    };
    try {
      for (int i = 0; i < kFibers; ++i) all.go(wait);
    } catch (...) {
      open.set();
      all.wait();
      throw;
    }
    weft::this_fiber::yield();
    open.set();
    all.wait();
    demand(through.load() == kFibers, "all have gone through");
  });
}
TEST_CASE("many parked fibers are all woken when a system call fails") {
  sweep(&wake_many, {{Call::map, ENOMEM},
                     {Call::protect, ENOMEM},
                     {Call::advise, ENOMEM},
                     {Call::advise_many, EPERM},
                     {Call::futex_wait, EINTR}});
}
TEST_CASE("a wake of many parked fibers reaches all of them even when an allocation fails") {
  sweep(&wake_many, {{Call::allocate, ENOMEM}});
}

// A plain thread wakes fibers, while the only worker is busy.
void wake_from_outside() {
  constexpr int kFibers = 300;
  weft::Runtime runtime({.workers = 1});
  weft::Event open;
  std::atomic<int> through{0};
  std::atomic<int> waiting{0};
  std::atomic<bool> held{false};
  std::atomic<bool> release{false};
  int spawned = 0;
  std::exception_ptr failure;
  try {
    for (; spawned < kFibers; ++spawned) {
      runtime.go([&] {
        waiting.fetch_add(1);
        open.wait();
        through.fetch_add(1);
      });
    }
    while (waiting.load() < kFibers) std::this_thread::yield();
    runtime.go([&] {
      held.store(true);
      while (!release.load()) std::this_thread::yield();
    });
    while (!held.load()) std::this_thread::yield();
  } catch (...) {
    failure = std::current_exception();
  }
  open.set();
  release.store(true);
  demand(runtime.wait_idle_for(10s), "all fibers end");
  demand(through.load() == spawned, "all have gone through");
  if (failure) std::rethrow_exception(failure);
}
TEST_CASE("fibers woken by a plain thread still run when an allocation fails") {
  sweep(&wake_from_outside, {{Call::allocate, ENOMEM}});
}

void wait_for_each_other() {
  weft::Runtime runtime({.workers = 2});
  runtime.run([] {
    weft::Channel<int> numbers(2);
    weft::Channel<int> answers;
    weft::Mutex mutex;
    int sum = 0;
    weft::JoinHandle<void> doubler;
    {
      struct Close {
        weft::Channel<int>& numbers;
        weft::Channel<int>& answers;
        ~Close() {
          numbers.close();
          answers.close();
        }
      };
      doubler = weft::spawn([&] {
        while (const auto number = numbers.receive()) {
          if (!answers.send(2 * *number)) return;
        }
      });
      const Close at_end{numbers, answers};
      auto feeder = weft::spawn([&] {
        for (int i = 0; i < 20; ++i) (void)numbers.send(i);
      });
      for (int i = 0; i < 20; ++i) {
        const auto answer = answers.receive();
        const std::lock_guard lock(mutex);
        sum += *answer;
      }
    }
    doubler.join();
    demand(sum == 380, "every number was doubled");
  });
}
TEST_CASE("fibers that wait for each other's values all continue when a system call fails") {
  sweep(&wait_for_each_other, {{Call::allocate, ENOMEM},
                               {Call::futex_wait, EINTR},
                               {Call::wait_epoll, EINTR},
                               {Call::map, ENOMEM},
                               {Call::protect, ENOMEM}});
}

void use_timers() {
  weft::Runtime runtime({.workers = 2});
  std::atomic<int> calls{0};
  std::vector<weft::DelayedCall> later;
  later.reserve(4);
  runtime.run([&] {
    weft::Timer timer(2ms);
    later.push_back(weft::call_after(1ms, [&calls] { calls.fetch_add(1); }));
    later.push_back(weft::call_after(1h, [] {}));
    weft::this_fiber::sleep_for(100us);
    timer.wait();
    weft::Ticker ticker(200us);
    for (int i = 0; i < 3; ++i) ticker.wait();
    (void)later.back().stop();
  });
  later.push_back(weft::call_after(1ms, [&calls] { calls.fetch_add(1); }));
  demand(runtime.wait_idle_for(10s), "all calls are made");
  demand(calls.load() == 2, "both calls were made");
}
TEST_CASE("a timer fires, or setting the timer throws, when a system call fails") {
  sweep(&use_timers, {{Call::allocate, ENOMEM},
                      {Call::futex_wait, EINTR},
                      {Call::wait_epoll, EINTR},
                      {Call::wait_epoll, ENOSYS}});
}

void block() {
  weft::Runtime runtime({.workers = 2});
  runtime.run([] {
    std::vector<weft::JoinHandle<int>> calls;
    for (int i = 0; i < 6; ++i) {
      calls.push_back(weft::spawn([i] {
        return weft::blocking([i] {
          std::this_thread::yield();
          return i;
        });
      }));
    }
    int sum = 0;
    for (auto& call : calls) sum += call.join();
    demand(sum == 15, "every call was made");
    demand(weft::blocking([] { return 7; }) == 7, "a call alone is made");
  });
}
TEST_CASE("blocking() makes its call or throws when a system call fails") {
  sweep(&block,
        {{Call::allocate, ENOMEM},
         {Call::start_thread, EAGAIN},
         {Call::futex_wait, EINTR},
         {Call::map, ENOMEM}},
        {std::make_error_code(std::errc::not_enough_memory)});
}

void group() {
  weft::Runtime runtime({.workers = 2});
  runtime.run([] {
    static weft::FiberLocal<std::string> local([] { return std::string(100, 'l'); });
    std::atomic<int> done{0};
    {
      weft::TaskGroup tasks;
      for (int i = 0; i < 10; ++i) {
        tasks.spawn([&done] {
          (void)*local;
          done.fetch_add(1);
        });
      }
      tasks.join();
    }
    demand(done.load() == 10, "every task was done");
    std::vector<int> numbers(20, 1);
    weft::for_each(numbers, [](int& number) { ++number; });
    const auto squares = weft::transform(numbers, [](int number) { return number * number; });
    demand(squares.size() == 20 && squares.back() == 4, "every number was squared");
    weft::Context context(weft::Deadline::after(1h));
    (void)context.cancel();
    demand(context.is_over(), "it is cancelled");
  });
}
TEST_CASE(
    "groups, parallel loops, FiberLocals and contexts succeed or throw when an allocation fails") {
  sweep(&group, {{Call::allocate, ENOMEM}});
}
}  // namespace

TEST_SUITE_END();
