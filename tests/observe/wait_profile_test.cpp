#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <weft/context.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/live_page.hpp>
#include <weft/mutex.hpp>
#include <weft/profile.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace std::chrono_literals;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Returns the first line of a profile that begins with `begin` and, before its number, ends with
// `end`; empty if there is none.
std::string line_of(const std::string& text, std::string_view begin, std::string_view end) {
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with(begin) && contains(line, end)) return line;
  }
  return {};
}

std::int64_t number_of(const std::string& line) { return std::stoll(line.substr(line.rfind(' '))); }

}  // namespace

TEST_SUITE_BEGIN("observe/wait_profile");

FIBER_TEST_CASE_WITH(
    "a contention profile shows which fibers wait for a mutex, in which calls, and for how long",
    {.workers = {1, 2}}) {
  if (weft::test::kSanitized) {
    CHECK(weft::profile::contention().error == std::errc::operation_not_supported);
    return;
  }
  weft::Mutex mutex;
  weft::detail::Atomic<bool> end{false};
  weft::WaitGroup group;
  for (int i = 0; i < 2; ++i) {
    group.go([&] {
      weft::this_fiber::set_name("contender");
      while (!end.load(weft::detail::relaxed)) {
        const std::lock_guard lock(mutex);
        weft::this_fiber::sleep_for(100us);
      }
    });
  }
  std::string line;
  while (line.empty()) {
    const auto [text, error] = weft::profile::contention({.duration = 20ms});
    CHECK(!error);
    CHECK(!contains(text, "[sleep] "));
    line = line_of(text, "contender;", ";[mutex] ");
  }
  CHECK(number_of(line) > 0);
  CHECK(contains(line, "lambda"));
  CHECK(contains(line, "observe_tests+0x"));
  // Each sample represents all waits that its worker has omitted since the previous sample. There
  // is one wait at a time, so the sum is as long as the recording, except for random omissions.
  line.clear();
  while (line.empty()) {
    line = line_of(weft::profile::blocked({.duration = 20ms}).value, "contender;", ";[sleep] ");
  }
  CHECK(weft::live::answer("/contention?seconds=0.001").status == 200);
  CHECK(weft::live::answer("/blocked?seconds=0.001&format=pprof").content_type ==
        "application/octet-stream");
  end.store(true, weft::detail::relaxed);
  group.wait();
}

FIBER_TEST_CASE_WITH(
    "a contention profile counts an unfinished wait up to the end of the recording",
    {.workers = {1, 2}}) {
  if (weft::test::kSanitized) return weft::test::skip("sanitized builds make no profiles");
  weft::Event event;
  weft::WaitGroup waiting;
  weft::detail::Atomic<bool> is_recorded{false};
  std::string line;
  weft::WaitGroup recording;
  recording.go([&] {
    while (line.empty()) {
      line = line_of(weft::profile::blocked({.duration = 20ms}).value, "waits;", ";[event] ");
    }
    is_recorded.store(true, weft::detail::relaxed);
  });
  // One of these fibers begins to wait when all workers see the recording.
  while (!is_recorded.load(weft::detail::relaxed)) {
    waiting.go([&] {
      weft::this_fiber::set_name("waits");
      event.wait();
    });
    weft::this_fiber::sleep_for(2ms);
  }
  recording.wait();
  CHECK(number_of(line) > 0);
  event.set();
  waiting.wait();
}

FIBER_TEST_CASE_WITH("a second contention profile is refused while the first is being recorded",
                     {.workers = {2}}) {
  if (weft::test::kSanitized) return weft::test::skip("sanitized builds make no profiles");
  weft::Context context;
  auto first = weft::spawn([&] {
    const weft::ContextScope scope(context);
    return weft::profile::contention({.duration = 60s}).error;
  });
  weft::test::await_parked(1);
  CHECK(weft::profile::blocked().error == std::errc::operation_in_progress);
  CHECK(weft::live::answer("/blocked").status == 409);
  context.cancel();
  CHECK(first.join() == weft::Errc::cancelled);
}

TEST_SUITE_END();
