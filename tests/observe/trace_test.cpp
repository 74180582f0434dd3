#include <weft/trace.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <weft/channel.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "scheduler/record/trace_book.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

using namespace std::chrono_literals;

namespace {

// Owns the test's file, which remains only if the test fails.
class TraceFile {
 public:
  TraceFile() {
    char name[] = "/tmp/weft_trace_XXXXXX";
    const int descriptor = ::mkstemp(name);
    if (descriptor >= 0) (void)::close(descriptor);
    path_ = name;
  }
  ~TraceFile() { (void)std::remove(path_.c_str()); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Returns whether tools/check_trace accepts the file and finds the expected events.
  [[nodiscard]] bool is_sound(const std::string& expectations) const {
    const std::string command =
        std::string(WEFT_TOOLS "/check_trace ") + path_ + " " + expectations + " 1>&2";
    return std::system(command.c_str()) == 0;  // NOLINT: no user has a say in it.
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string text() const {
    std::ifstream file(path_);
    std::ostringstream all;
    all << file.rdbuf();
    return all.str();
  }

 private:
  std::string path_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Causes events of every kind that a trace has.
void do_various_things() {
  weft::FiberPool pool({.capacity = 2, .queue_capacity = 1000, .name = "mail"});
  weft::Channel<int> channel;
  weft::Mutex mutex;
  weft::WaitGroup sent;
  weft::WaitGroup received;
  sent.add(20);
  received.add(1);
  weft::go({.name = "receiver"}, [&] {
    while (channel.receive()) {
    }
    received.done();
  });
  for (int i = 0; i < 20; ++i) {
    weft::go([&] {
      mutex.lock();
      weft::this_fiber::sleep_for(100us);
      mutex.unlock();
      (void)channel.send(1);
      CHECK(pool.submit([] { weft::this_fiber::yield(); }));
      sent.done();
    });
  }
  sent.wait();
  channel.close();
  received.wait();
  auto child = weft::spawn([] { return 1; });
  CHECK(child.join() == 1);
  pool.wait_idle();
}

}  // namespace

TEST_SUITE_BEGIN("observe/trace");

THREAD_TEST_CASE("a written trace is well-formed and contains the expected events") {
  const TraceFile file;
  runtime.run([] {
    weft::trace::start();
    CHECK(weft::trace::is_on());
    do_various_things();
    weft::trace::stop();
  });
  CHECK(!weft::trace::is_on());
  CHECK(weft::trace::write_file(file.path()));
  CHECK(
      file.is_sound("--expect receiver --expect wakes --expect 'task of mail' --expect main "
                    "--expect 'submit: mail' --expect thread_name"));
}

THREAD_TEST_CASE("a trace can be written while it is being recorded and its rings overflow") {
  const TraceFile file;
  weft::trace::start({.events_per_worker = 256});
  std::thread worker([&runtime] { runtime.run(do_various_things); });
  for (int i = 0; i < 5; ++i) {
    CHECK(weft::trace::write_file(file.path()));
    CHECK(file.is_sound(""));
  }
  worker.join();
  weft::trace::stop();
}

TEST_CASE("a trace outlives its runtime until a new trace discards the old events") {
  const TraceFile file;
  weft::trace::start();
  weft::run([] { weft::spawn({.name = "who was here"}, [] {}).join(); });
  weft::trace::stop();
  CHECK(weft::trace::write_file(file.path()));
  CHECK(contains(file.text(), "who was here"));
  CHECK(file.is_sound("--expect 'who was here'"));
  weft::trace::start();
  weft::trace::stop();
  CHECK(weft::trace::write_file(file.path()));
  CHECK(!contains(file.text(), "who was here"));
}

FIBER_TEST_CASE("trace::write_file() returns a file error unchanged") {
  CHECK(weft::trace::write_file("/nowhere/at/all.json") == std::errc::no_such_file_or_directory);
  CHECK(weft::trace::write_file("") == std::errc::no_such_file_or_directory);
  CHECK(weft::trace::write_file("/") == std::errc::is_a_directory);
  CHECK(weft::trace::write_file("/dev/full") == std::errc::no_space_on_device);
  CHECK(weft::trace::write_file("/dev/null"));
}

TEST_CASE("trace::start() refuses a buffer that is larger than the available memory") {
  if (weft::test::kSanitized) {
    return weft::test::skip("a sanitizer's operator new ends the process");
  }
  for (const std::size_t events : {SIZE_MAX, SIZE_MAX - 5, SIZE_MAX / 2 + 2, SIZE_MAX / 4}) {
    CHECK_THROWS_AS(weft::trace::start({.events_per_worker = events}), std::bad_alloc);
    CHECK(!weft::trace::is_on());
  }
}

TEST_CASE("reading a full trace ring omits events that may be overwritten during the read") {
  weft::scheduler::TraceRing ring(64, 0, 0);
  for (std::uint64_t put = 1; put <= 200; ++put) {
    ring.put({put - 1, weft::detail::TraceKind::run, 1, 2, {}});
    const auto [events, lost] = ring.read();
    CHECK(lost == (put < 64 ? 0 : put - 63));
    CHECK(events.size() == put - lost);
    CHECK(events.front().ticks == lost);
  }
}

TEST_CASE("a trace ring keeps the newest events in order while its owner is writing") {
  weft::scheduler::TraceRing ring(64, 0, 0);
  CHECK(ring.read().events.empty());
  std::jthread owner([&ring](const std::stop_token& stop) {
    for (std::uint64_t i = 0; !stop.stop_requested(); ++i) {
      ring.put({i, weft::detail::TraceKind::run, 1, 2, {i, i + 1, i + 2, i + 3}});
    }
  });
  for (int round = 0; round < 2000; ++round) {
    const auto [events, lost] = ring.read();
    CHECK(events.size() <= 64);
    if (!events.empty() && events.front().ticks != lost) FAIL_CHECK("lost others");
    for (std::size_t i = 0; i < events.size(); ++i) {
      const auto& event = events[i];
      if (i > 0 && event.ticks != events[i - 1].ticks + 1) FAIL_CHECK("out of order");
      if (event.words[0] != event.ticks || event.words[3] != event.ticks + 3) FAIL_CHECK("torn");
      if (event.reason != 1 || event.extra != 2) FAIL_CHECK("torn");
    }
  }
}

TEST_SUITE_END();
