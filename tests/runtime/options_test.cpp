#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/semaphore.hpp>
#include <weft/this_fiber.hpp>

#include "runtime/config.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using weft::Errc;
using weft::Runtime;
using weft::RuntimeOptions;
using weft::runtime::parse_workers;
using weft::runtime::resolve;

template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& caught) {
    return caught.what();
  }
  return "not refused";
}
bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST_SUITE_BEGIN("runtime/options");

TEST_CASE("WEFT_WORKERS accepts a number from 1 to 1024 and no other value") {
  CHECK(parse_workers("1") == 1);
  CHECK(parse_workers("1024") == 1024);
  for (const char* text :
       {"", "0", "-1", "+1", " 1", "1 ", "1.5", "two", "0x10", "1025", "99999999999999999999"}) {
    const std::string what = refusal([text] { (void)parse_workers(text); });
    CHECK(holds(what, "WEFT_WORKERS"));
    CHECK(holds(what, "1024"));
    CHECK(holds(what, text));
  }
}

TEST_CASE("WEFT_WORKERS has an effect only if the program sets no number of workers") {
  const weft::test::TestGuard guard("WEFT_WORKERS");
  const char* before = std::getenv("WEFT_WORKERS");
  const std::string kept = before != nullptr ? before : "";
  setenv("WEFT_WORKERS", "3", 1);
  CHECK(Runtime().workers() == 3);
  CHECK(Runtime({.workers = 2}).workers() == 2);
  setenv("WEFT_WORKERS", "many", 1);
  CHECK(holds(refusal([] { const Runtime refused; }), "many"));
  CHECK(Runtime({.workers = 1}).workers() == 1);
  unsetenv("WEFT_WORKERS");
  CHECK(Runtime().workers() >= 1);
  if (before != nullptr) setenv("WEFT_WORKERS", kept.c_str(), 1);
}

TEST_CASE(
    "the error about a refused runtime option shows the option, its value and the permitted "
    "range") {
  std::string what = refusal([] { (void)resolve({.workers = 1025}); });
  CHECK(holds(what, "workers"));
  CHECK(holds(what, "1025"));
  CHECK(holds(what, "1024"));
  what = refusal([] { (void)resolve({.workers = 1, .stack_size = (16 << 20) + 1}); });
  CHECK(holds(what, "stack_size"));
  CHECK(holds(what, "16777217"));
  CHECK(holds(what, "16777216"));
  what = refusal([] { (void)resolve({.workers = 1, .max_fibers = 0}); });
  CHECK(holds(what, "max_fibers"));
  CHECK(holds(what, "1"));
  what = refusal([] { (void)resolve({.workers = 1, .max_blocking_threads = 0}); });
  CHECK(holds(what, "max_blocking_threads"));
  CHECK(holds(what, "1"));
}

TEST_CASE("go() throws an error after the constructor of the only runtime has thrown") {
  const weft::test::TestGuard guard("refused");
  CHECK_THROWS_AS(Runtime({.workers = 5000}), std::invalid_argument);
  CHECK_THROWS_AS(weft::go([] {}), std::system_error);
  CHECK(weft::run([] { return 1; }) == 1);
}

// There are no spare workers, because each of them also has records.
FIBER_TEST_CASE_WITH("spawning more fibers than max_fibers throws an error that names the limit",
                     {.workers = {1, 2}, .options = {.max_fibers = 5000, .max_spare_workers = 0}}) {
  weft::Semaphore hold(0);
  std::size_t started = 0;
  std::string what;
  while (started < 20'000) {
    try {
      weft::go([&] { hold.acquire(); });
      ++started;
    } catch (const std::system_error& caught) {
      CHECK(caught.code() == Errc::too_many_fibers);
      what = caught.what();
      break;
    }
  }
  CHECK(holds(what, "max_fibers"));
  CHECK(holds(what, "5000"));
  const std::size_t tolerance = (runtime.workers() + 1) * 1024;
  CHECK(started + tolerance >= 5000);
  CHECK(started <= 5000 + tolerance);
  hold.release(static_cast<std::uint32_t>(started));
  while (runtime.stats().live > 1) weft::this_fiber::yield();
  weft::go([] {});  // There is room again.
}

TEST_CASE(
    "spawning throws an error that names memory_goal while the process uses more memory than the "
    "goal") {
  weft::Runtime runtime({.workers = 1, .memory_goal = 1});
  std::string what;
  while (what.empty()) {
    try {
      runtime.go([] {});
    } catch (const std::system_error& caught) {
      CHECK(caught.code() == Errc::too_many_fibers);
      what = caught.what();
    }
  }
  CHECK(holds(what, "RuntimeOptions::memory_goal = 1"));
  CHECK(runtime.stats().memory_goal == 1);
  CHECK(runtime.stats().memory_goals_reached == 1);
}

THREAD_TEST_CASE_WITH("on_exception receives the exceptions of detached fibers only",
                      {.options = {.on_exception = [](std::exception_ptr exception) {
                         try {
                           std::rethrow_exception(exception);
                         } catch (const std::system_error& unexpected) {
                           FAIL_CHECK("a joined fiber's exception: ", unexpected.what());
                         } catch (weft::Semaphore* caught) {
                           // A handler may use everything that a fiber may.
                           weft::this_fiber::yield();
                           caught->release();
                         }
                       }}}) {
  weft::Semaphore caught(0);
  for (int i = 0; i < 10; ++i) weft::go([&caught] { throw &caught; });
  auto joined = weft::spawn([] { throw std::system_error(make_error_code(Errc::closed)); });
  CHECK_THROWS_AS(joined.join(), std::system_error);
  caught.acquire(10);
  CHECK(runtime.run([] { return 3; }) == 3);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("runtime/names");

FIBER_TEST_CASE("a fiber has the name that its spawn requests, truncated to 31 characters") {
  CHECK(weft::this_fiber::name() == "main");
  CHECK(weft::spawn([] { return std::string(weft::this_fiber::name()); }).join().empty());
  const auto name_of = [](std::string_view given) {
    return weft::spawn({.name = given},
                       [] {
                         weft::this_fiber::yield();
                         return std::string(weft::this_fiber::name());
                       })
        .join();
  };
  CHECK(name_of("reader") == "reader");
  CHECK(name_of(std::string(31, 'a')) == std::string(31, 'a'));
  CHECK(name_of(std::string(32, 'b')) == std::string(31, 'b'));
  CHECK(name_of(std::string(1000, 'c')) == std::string(31, 'c'));
  CHECK(weft::spawn([] {
          weft::this_fiber::set_name("chosen later");
          weft::this_fiber::yield();
          return std::string(weft::this_fiber::name());
        }).join() == "chosen later");
  // The fibers reuse the stacks, but not the names.
  for (int i = 0; i < 100; ++i) {
    CHECK(weft::spawn([] { return weft::this_fiber::name().empty(); }).join());
  }
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("runtime/dump");

THREAD_TEST_CASE("a dump shows every fiber with its name, its state and the reason for its wait") {
  weft::Channel<int> channel;
  weft::Semaphore semaphore(0);
  weft::go({.name = "the receiver"}, [&] { (void)channel.receive(); });
  weft::go({.name = "the sleeper"}, [&] {
    if (semaphore.try_acquire_for(std::chrono::hours(1))) weft::this_fiber::yield();
  });
  std::string text;
  for (;;) {
    std::ostringstream out;
    runtime.dump(out);
    text = out.str();
    // A fiber that begins to run meanwhile may have its name only in the next dump.
    if (holds(text, "channel receive") && holds(text, "semaphore") && holds(text, "the receiver") &&
        holds(text, "the sleeper")) {
      break;
    }
    std::this_thread::yield();
  }
  CHECK(holds(text, "2 fibers"));
  CHECK(holds(text, "parked"));
  CHECK(holds(text, "the receiver"));
  CHECK(holds(text, "the sleeper"));
  channel.close();
  semaphore.release();
  CHECK(runtime.wait_idle_for(std::chrono::seconds(60)));
}

FIBER_TEST_CASE("dumps may be taken at any time, even while fibers start, wait and end") {
  std::atomic<bool> stop{false};
  std::thread dumper([&] {
    while (!stop.load()) {
      std::ostringstream out;
      runtime.dump(out);
      (void)runtime.stats();
      if (out.str().empty()) FAIL_CHECK("an empty dump");
    }
  });
  for (int round = 0; round < 20; ++round) {
    std::vector<weft::JoinHandle<void>> fibers;
    for (int i = 0; i < 100; ++i) {
      fibers.push_back(weft::spawn({.name = "short"}, [] { weft::this_fiber::yield(); }));
    }
  }
  stop.store(true);
  dumper.join();
}

TEST_SUITE_END();

}  // namespace
