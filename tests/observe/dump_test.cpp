#include <weft/dump.hpp>

#include <sstream>
#include <string>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/metrics.hpp>
#include <weft/mutex.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

namespace {

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

FIBER_TEST_CASE("a dump in JSON has each living fiber, with a name that needs escaping") {
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

FIBER_TEST_CASE("folded stacks count the fibers that are in the same calls") {
  weft::Event event;
  weft::Mutex mutex;
  mutex.lock();
  for (int i = 0; i < 5; ++i) weft::go([&] { event.wait(); });
  auto last = weft::spawn([&] {
    mutex.lock();
    mutex.unlock();
  });
  weft::test::await_parked(6);
  // A fiber is seen as parked a little earlier than its calls are seen.
  std::string text;
  while (count_of(text, "[event] 5\n") != 1 || count_of(text, "[mutex] 1\n") != 1) {
    weft::this_fiber::yield();
    text = written_by(&weft::dump::write_folded);
  }
  CHECK(count_of(text, "\n") == 2);
  // There are calls, except under sanitizers.
  CHECK((count_of(text, ";") > 6) == !weft::test::kSanitized);
  event.set();
  mutex.unlock();
  last.join();
}

TEST_CASE("without a runtime there are no fibers") {
  CHECK(written_by(&weft::dump::write_json) == R"({"fibers":[]})");
  CHECK(written_by(&weft::dump::write_folded).empty());
}

TEST_SUITE_END();
