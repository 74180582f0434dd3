// Tests that a failed check lists all fibers before it ends the process.
#include <sstream>
#include <string>
#include <thread>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "base/panic.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "tests/support/death_test.hpp"

namespace {

// Fails a check in a fiber when another fiber is parked.
template <class Bystander>
void fail_beside(unsigned workers, std::size_t stack_size, Bystander bystander) {
  weft::run({.workers = workers}, [&] {
    auto parked = weft::spawn({.name = "bystander"}, bystander);
    std::ostringstream text;
    while (text.str().find("'bystander' is parked") == std::string::npos) {
      weft::this_fiber::yield();
      weft::dump_fibers(text);
    }
    weft::spawn({.stack_size = stack_size, .name = "culprit"}, [] {
      weft::Mutex mutex;
      mutex.unlock();
    }).join();
  });
}

void fail_beside_a_receiver(unsigned workers, std::size_t stack_size = 0) {
  weft::Channel<int> channel;
  fail_beside(workers, stack_size, [&] { (void)channel.receive(); });
}

TEST_SUITE_BEGIN("death/panic_dump");

// The id is not 0, which means a plain thread. The new process of this test has had no fiber
// before.
DEATH_TEST_CASE("the first fiber of a process has the id 1", "this is fiber 1 ") {
  weft::run({.workers = 1}, [] {
    const std::string sentence = "this is fiber " + std::to_string(weft::this_fiber::id());
    weft::base::panic(sentence.c_str(), "file", 1);
  });
}

DEATH_TEST_CASE("the report of a failed check shows the number of fibers", "weft: 3 fibers on ") {
  fail_beside_a_receiver(2);
}

DEATH_TEST_CASE("a dump after a failed check shows what each fiber waits for",
                "'bystander' is parked: channel receive") {
  fail_beside_a_receiver(1);
}

DEATH_TEST_CASE("a dump after a failed check shows the running fiber", "'culprit' is running") {
  fail_beside_a_receiver(1);
}

DEATH_TEST_CASE("a failed check on a fiber with the smallest stack still writes the dump",
                "'culprit' is running") {
  fail_beside_a_receiver(1, 1);
}

DEATH_TEST_CASE("the report of a failed check on a plain thread also lists the fibers",
                "'main' is parked: channel receive") {
  weft::Channel<int> channel;
  weft::Runtime runtime({.workers = 1});
  std::thread receiver([&] { runtime.run([&] { (void)channel.receive(); }); });
  std::ostringstream text;
  while (text.str().find("channel receive") == std::string::npos) weft::dump_fibers(text);
  WEFT_CHECK(false, "the plain thread has failed");
}

DEATH_TEST_CASE(
    "a failed check while the fiber records are locked reports that fibers cannot be listed",
    "they cannot be listed: the lock of their records is held") {
  weft::run({.workers = 1}, [] {
    (void)weft::scheduler::Scheduler::current()->shared().fibers().for_each_until(
        weft::Deadline::never(), [](const weft::fibers::Fiber&) {
          WEFT_CHECK(false, "failed with the records locked");
          return true;
        });
  });
}

DEATH_TEST_CASE(
    "a failed check while the list of runtimes is locked reports why no fibers are listed",
    "weft: no list of fibers: a runtime is being made or destroyed") {
  weft::run({.workers = 1}, [] {
    (void)weft::scheduler::visit_registry(weft::Deadline::never(), [](weft::scheduler::Scheduler&) {
      WEFT_CHECK(false, "failed with the list locked");
    });
  });
}

TEST_SUITE_END();

}  // namespace
