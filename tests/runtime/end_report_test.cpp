// Tests the reports of a runtime's end while it waits for fibers.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

std::size_t count_of(std::string_view part, std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++count;
  return count;
}

// Reads the output on stderr, and sets `found` when the output has each of `texts` `times` times.
class StderrReader {
 public:
  StderrReader(std::vector<std::string_view> texts, weft::Event& found, std::size_t times = 1)
      : saved_(::dup(STDERR_FILENO)) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
    thread_ = std::thread([this, texts = std::move(texts), &found, times, from = ends[0]] {
      std::array<char, 4096> buffer;
      for (ssize_t count = 0; (count = ::read(from, buffer.data(), buffer.size())) > 0;) {
        text_.append(buffer.data(), static_cast<std::size_t>(count));
        const auto has = [&](std::string_view each) { return count_of(each, text_) >= times; };
        if (std::ranges::all_of(texts, has)) found.set();
      }
      ::close(from);
    });
  }
  StderrReader(const StderrReader&) = delete;
  StderrReader& operator=(const StderrReader&) = delete;
  ~StderrReader() {
    if (thread_.joinable()) (void)end();
  }
  // Restores stderr, and returns all the output.
  std::string end() {
    ::dup2(saved_, STDERR_FILENO);  // Closes the pipe's last writer, so the thread reads its end.
    ::close(saved_);
    thread_.join();
    return std::move(text_);
  }

 private:
  int saved_;
  std::string text_;
  std::thread thread_;
};

TEST_SUITE_BEGIN("runtime/end_report");

// Without the report, the fibers of these cases would wait forever.

TEST_CASE("run() reports the exception of the main fiber while another fiber still exists") {
  weft::Event reported;
  StderrReader reader({"bad configuration", "the_server"}, reported);
  CHECK_THROWS_WITH_AS(weft::run([&] {
                         weft::go({.name = "the_server"}, [&] { reported.wait(); });
                         throw std::runtime_error("bad configuration");
                       }),
                       "bad configuration", std::runtime_error);
  CHECK(count_of("an exception ends the scope of a Runtime", reader.end()) == 1);
}

TEST_CASE("run() reports nothing when the main fiber throws and no other fiber exists") {
  // If the worker got no processor for 0.1 s at this moment, it has not ended the fiber; the test
  // then retries.
  bool is_silent = false;
  for (int i = 0; i < 5 && !is_silent; ++i) {
    weft::Event never;
    StderrReader reader({"weft"}, never);
    CHECK_THROWS_AS(weft::run([] { throw std::runtime_error("alone"); }), std::runtime_error);
    is_silent = reader.end().empty();
  }
  CHECK(is_silent);
}

// The last report releases the fibers below: without it, they would hang.
TEST_CASE(
    "run() and destructors of pools, groups and handles report a wait that lasts 5 s during stack "
    "unwinding") {
  weft::Event reported;
  constexpr std::array kWorkers{1U, 2U, 8U};  // A fourth would use the last report of a burst.
  StderrReader reader(
      {"the destructor of FiberPool 'emails' (tasks: 1 run, 0 are queued), by fiber",
       "the destructor of FiberPool 'a thread's' (tasks: 1 run, 0 are queued), by a plain",
       "the destructor of a TaskGroup, by fiber", "run by an exception, by fiber",
       "the end of a Runtime has waited for 5 s", "'refresher'"},
      reported, kWorkers.size());
  const auto be_at_end = [&](unsigned workers) {
    weft::Runtime runtime({.workers = workers});
    const weft::RuntimeScope scope(runtime);
    weft::go([&] {
      weft::FiberPool pool({.capacity = 1, .name = "emails"});
      (void)pool.submit([&] { reported.wait(); });
    });
    weft::go([&] {
      weft::TaskGroup group;
      group.spawn([&] { reported.wait(); });
    });
    weft::go([&] {
      try {
        const weft::JoinHandle handle =
            weft::spawn({.name = "the_reader"}, [&] { reported.wait(); });
        throw std::runtime_error("between a spawn and its end");
      } catch (const std::runtime_error&) {
      }
    });
    weft::FiberPool pool({.capacity = 1, .name = "a thread's"});
    (void)pool.submit([&] { reported.wait(); });
  };
  {
    std::vector<std::jthread> threads;
    for (const unsigned workers : kWorkers) {
      threads.emplace_back(be_at_end, workers);
      threads.emplace_back(
          [&] { weft::run([&] { weft::go({.name = "refresher"}, [&] { reported.wait(); }); }); });
    }
  }
  const std::string text = reader.end();
  CHECK(count_of("the end of a Runtime has waited", text) == kWorkers.size());
  CHECK(count_of("run by an exception", text) == kWorkers.size());
  CHECK(count_of("the destructor of", text) == 4 * kWorkers.size());
  CHECK(count_of("'the_reader' is parked: event", text) >= kWorkers.size());
}

TEST_CASE("destroying a handle reports nothing when no exception is thrown") {
  weft::Event never;
  StderrReader reader({"weft"}, never);
  weft::run([] {
    weft::JoinHandle handle =
        weft::spawn([] { weft::this_fiber::sleep_for(std::chrono::milliseconds(1)); });
  });
  CHECK(reader.end().empty());
}

TEST_SUITE_END();

}  // namespace
