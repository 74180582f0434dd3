// Tests waits without a limit in a context that has ended.
#include <chrono>
#include <cstdlib>
#include <weft/channel.hpp>
#include <weft/context.hpp>
#include <weft/event.hpp>
#include <weft/mutex.hpp>
#include <weft/runtime.hpp>
#include <weft/semaphore.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/deadlock.hpp"
#include "tests/support/death_test.hpp"
#include "tests/support/skip.hpp"

namespace {

TEST_SUITE_BEGIN("death/late_wait");

#if defined(WEFT_TELLS_LATE_WAITS) && !defined(WEFT_TEST_TSAN)

using std::chrono::milliseconds;

// Nothing else could end these waits: the report of the deadlock ends the process.
DEATH_TEST_CASE("a receive() that waits beyond the deadline of its context writes a line to stderr",
                "'reader' waits on (channel receive) beyond the end of its context") {
  weft::run([] {
    weft::this_fiber::set_name("reader");
    weft::Channel<int> never;
    weft::with_timeout(milliseconds(1), [&] { (void)never.receive(); });
  });
}

DEATH_TEST_CASE("a send() that waits in a cancelled group writes a line to stderr",
                "waits on (channel send) beyond the end of its context") {
  weft::run([] {
    weft::Channel<int> never;
    weft::TaskGroup group;
    group.spawn([&] { (void)never.send(1); });
    group.spawn([] { throw 1; });
    group.join();
  });
}

DEATH_TEST_CASE(
    "an acquire() that begins to wait after the end of its context writes a line to stderr",
    "waits on (semaphore) beyond the end of its context") {
  weft::run([] {
    weft::Semaphore none(0);
    weft::with_deadline(weft::Deadline::past(), [&] { none.acquire(); });
  });
}

DEATH_TEST_CASE(
    "a lock() that is still waiting long after the end of its context writes a line to stderr",
    "waits on (mutex) beyond the end of its context") {
  weft::run([] {
    weft::Mutex mutex;
    mutex.lock();
    weft::with_deadline(weft::Deadline::past(), [&] { mutex.lock(); });
  });
}

#else

TEST_CASE("waits beyond the end of a context are reported only in programs built with assertions") {
#ifdef WEFT_TEST_TSAN
  weft::test::skip(weft::test::kNoVerdict);
#else
  weft::test::skip("only programs with assertions report late waits");
#endif
}

#endif

TEST_SUITE_END();

}  // namespace
