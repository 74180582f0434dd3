#include <weft/dump.hpp>

#include <atomic>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/metrics.hpp>
#include <weft/mutex.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "observe/leaks.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

namespace {

using namespace std::chrono_literals;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

std::string written_by(void (*write)(std::ostream&)) {
  std::ostringstream out;
  write(out);
  return out.str();
}

}  // namespace

TEST_SUITE_BEGIN("observe/dump");

FIBER_TEST_CASE("a JSON dump contains every existing fiber and escapes the fibers' names") {
  weft::Event event;
  for (int i = 0; i < 300; ++i) weft::go({.name = "a \"b\"\n"}, [&] { event.wait(); });
  weft::test::await_parked(300);
  const std::string text = written_by(&weft::dump::write_json);
  CHECK(text.starts_with(R"({"fibers":[{)"));
  CHECK(text.ends_with("}]}"));
  const std::string number = std::to_string(weft::metrics::read().runtimes.at(0).number);
  CHECK(count_of(text, R"("name":"a \"b\"\n","runtime":)" + number +
                           R"(,"state":"parked","reason":"event")") == 300);
  CHECK(count_of(text, R"("state":"running")") == 1);
  CHECK(count_of(text, R"("spawned_at":")") >= 1);
  event.set();
}

FIBER_TEST_CASE("a dump of folded stacks shows how many fibers have the same call stack") {
  weft::Event event;
  weft::Mutex mutex;
  mutex.lock();
  for (int i = 0; i < 5; ++i) weft::go([&] { event.wait(); });
  auto last = weft::spawn([&] {
    mutex.lock();
    mutex.unlock();
  });
  weft::test::await_parked(6);
  // A dump may show a fiber as parked slightly before it can show the fiber's calls.
  std::string text;
  while (count_of(text, "[event] 5\n") != 1 || count_of(text, "[mutex] 1\n") != 1) {
    weft::this_fiber::yield();
    text = written_by(&weft::dump::write_folded);
  }
  CHECK(count_of(text, "\n") == 2);
  // The dump has calls, except under sanitizers.
  CHECK((count_of(text, ";") > 6) == !weft::test::kSanitized);
  event.set();
  mutex.unlock();
  last.join();
}

FIBER_TEST_CASE_WITH("a dump shows how long a fiber has been parked", {.workers = {2}}) {
  weft::Event event;
  weft::go([&] { event.wait(); });
  std::ostringstream dump;
  // While all workers sleep, the monitor examines the fibers before it also sleeps.
  while (dump.str().find("parked: event, for ") == std::string::npos) {
    weft::this_fiber::sleep_for(700ms);
    dump.str("");
    weft::dump_fibers(dump);
  }
  CHECK(count_of(written_by(&weft::dump::write_json), R"("age_seconds":)") >= 1);
  event.set();
}

FIBER_TEST_CASE_WITH(
    "a dump shows how long a fiber has been running, and the fiber's current call stack",
    {.workers = {2}}) {
  std::atomic<bool> is_seen = false;
  auto spinning = weft::spawn([&] {
    while (!is_seen) {
    }
  });
  // The dump has the spinning thread's calls, unless they take too long to read.
  const auto shows_age_and_calls = [](const std::string& text) {
    const std::size_t line = text.find("is running, for ");
    if (line == std::string::npos) return false;
    if (weft::test::kSanitized || weft::test::kEmulated) return true;
    return text.compare(text.find('\n', line) + 1, 7, "    at ") == 0;
  };
  std::ostringstream dump;
  while (!shows_age_and_calls(dump.str())) {
    weft::this_fiber::sleep_for(1ms);
    dump.str("");
    weft::dump_fibers(dump);
  }
  is_seen = true;
  spinning.join();
}

TEST_CASE(
    "a dump reports a leak if many fibers have been waiting for a long time and their number is "
    "growing") {
  const auto waiting = [](const char* reason, std::chrono::minutes age) {
    weft::observe::FiberEntry fiber;
    fiber.reason = reason;
    fiber.age = age;
    return fiber;
  };
  std::vector<weft::observe::FiberEntry> fibers;
  const auto add = [&](std::size_t count, const weft::observe::FiberEntry& fiber) {
    fibers.insert(fibers.end(), count, fiber);
  };
  add(160, waiting("channel receive", 2h));
  add(10, waiting("channel receive", 2min));
  add(5, waiting("channel receive", 0min));
  add(1'000, waiting("readable", 30min));  // These are connections, whose number does not grow.
  add(10, waiting("readable", 2min));
  add(63, waiting("mutex", 10min));  // These fibers are too few.
  add(63, waiting("mutex", 1min));
  add(1'000, waiting("", 60min));  // These fibers are running.
  add(1'000, waiting("", 1min));
  const std::vector<weft::observe::Leak> leaks = weft::observe::find_leaks(fibers);
  REQUIRE(leaks.size() == 1);
  CHECK(leaks[0].example.reason == std::string("channel receive"));
  CHECK(leaks[0].example.age == 2h);
  CHECK(leaks[0].count == 175);
  CHECK(leaks[0].old == 160);
  CHECK(leaks[0].young == 10);
}

TEST_CASE("a dump is empty without a runtime") {
  CHECK(written_by(&weft::dump::write_json) == R"({"fibers":[]})");
  CHECK(written_by(&weft::dump::write_folded).empty());
}

TEST_SUITE_END();
