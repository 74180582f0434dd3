#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>
#include <weft/descriptor.hpp>
#include <weft/go.hpp>
#include <weft/io.hpp>
#include <weft/runtime.hpp>
#include <weft/select.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

using namespace weft;
using weft::test::await_parked;
using namespace std::chrono_literals;
using io::Ready;
using io::Watch;
using io::WatchSet;

TEST_SUITE_BEGIN("io/watch");

namespace {

// Opens a blocking socket pair, like that of a library that does not use fibers.
class Foreign {
 public:
  Foreign() { CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) == 0); }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
  ~Foreign() {
    ::close(ends_[0]);
    hang_up();
  }
  [[nodiscard]] int descriptor() const { return ends_[0]; }
  void feed() const { CHECK(::write(ends_[1], "x", 1) == 1); }
  void eat() const {
    char byte = 0;
    CHECK(::read(ends_[0], &byte, 1) == 1);
  }
  void hang_up() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

}  // namespace

FIBER_TEST_CASE("fibers can wait repeatedly for a descriptor that a Watch has borrowed") {
  const Foreign foreign;
  auto [watch, error] = Watch::borrow(foreign.descriptor());
  REQUIRE(error == std::error_code{});
  CHECK(watch.wait(Ready::read, Deadline::past()).error == Errc::timed_out);
  for (int i = 0; i < 20; ++i) {
    auto waiter = spawn([&waited = watch] { return waited.wait(Ready::read); });
    foreign.feed();
    CHECK(waiter.join().value == Ready::read);
    // The result is the current state, however often a caller asks for it.
    CHECK(watch.wait(Ready::read).value == Ready::read);
    CHECK(watch.wait(Ready::either).value == Ready::either);
    foreign.eat();
    CHECK(watch.wait(Ready::either).value == Ready::write);
    CHECK(watch.wait(Ready::read, Deadline::after(100us)).error == Errc::timed_out);
  }
}

FIBER_TEST_CASE("wait_for_edge() waits for a new edge even when unread bytes remain") {
  const Foreign foreign;
  foreign.feed();
  auto [watch, error] = Watch::borrow(foreign.descriptor());
  REQUIRE(error == std::error_code{});
  CHECK(watch.wait_for_edge(Ready::read).value == Ready::read);
  CHECK(watch.wait_for_edge(Ready::write).value == Ready::write);
  // There are unread bytes, but no new bytes.
  CHECK(watch.wait_for_edge(Ready::read, Deadline::after(100us)).error == Errc::timed_out);
  CHECK(watch.wait_for_edge(Ready::either).value == Ready::either);
  auto waiter = spawn([&waited = watch] { return waited.wait_for_edge(Ready::read); });
  foreign.feed();
  CHECK(waiter.join().value == Ready::read);
  foreign.eat();
  foreign.eat();
  watch.close();
  CHECK(watch.wait_for_edge(Ready::read).error == Errc::closed);
}

FIBER_TEST_CASE(
    "the destructor of a Watch leaves a borrowed descriptor open and closes an adopted "
    "descriptor") {
  Foreign foreign;
  {
    auto [watch, error] = Watch::borrow(foreign.descriptor());
    CHECK(error == std::error_code{});
  }
  foreign.feed();
  foreign.eat();
  const int copy = ::dup(foreign.descriptor());
  {
    auto [watch, error] = Watch::adopt(copy);
    CHECK(error == std::error_code{});
    CHECK(watch.native_handle() == copy);
  }
  CHECK(::fcntl(copy, F_GETFD) == -1);
  auto [released, error] = Watch::adopt(::dup(foreign.descriptor()));
  CHECK(error == std::error_code{});
  const int mine = released.release();
  CHECK(::fcntl(mine, F_GETFD) != -1);
  ::close(mine);
  CHECK(released.wait(Ready::read).error == Errc::closed);
}

FIBER_TEST_CASE("a second Watch for a descriptor that already has a Watch is refused") {
  const Foreign foreign;
  auto [first, error] = Watch::borrow(foreign.descriptor());
  CHECK(error == std::error_code{});
  CHECK(Watch::borrow(foreign.descriptor()).error == Errc::already_watched);
  CHECK(Watch::adopt(foreign.descriptor()).error == Errc::already_watched);
  first = {};
  CHECK(Watch::borrow(foreign.descriptor()).error == std::error_code{});
}

FIBER_TEST_CASE(
    "a hang-up, a stop request or a deadline ends a wait for a descriptor, and a closed Watch "
    "refuses waits") {
  Foreign foreign;
  auto [watch, error] = Watch::borrow(foreign.descriptor());
  CHECK(error == std::error_code{});
  std::stop_source stop;
  for (const Ready what : {Ready::read, Ready::either}) {
    if (what == Ready::either) {
      // Fills the socket, so that it is not writable either.
      ::fcntl(foreign.descriptor(), F_SETFL, O_NONBLOCK);
      const std::vector<char> much(1 << 20);
      while (::write(foreign.descriptor(), much.data(), much.size()) > 0) {
      }
    }
    CHECK(watch.wait(what, Deadline::after(1ms)).error == Errc::timed_out);
    std::stop_source source;
    auto waiter = spawn(
        [&waited = watch, &source, what] { return waited.wait(what, source.get_token()).error; });
    await_parked(runtime, what == Ready::read ? "readable" : "select with sockets");
    (void)source.request_stop();
    CHECK(waiter.join() == Errc::cancelled);
  }
  auto waiter = spawn([&waited = watch] { return waited.wait(Ready::read); });
  await_parked(runtime, "readable");
  foreign.hang_up();
  CHECK(waiter.join().value == Ready::read);
  watch.close();
  CHECK(watch.wait(Ready::read).error == Errc::closed);
}

THREAD_TEST_CASE(
    "a plain thread waits for a watched descriptor, and closing the watch ends the wait") {
  const Foreign foreign;
  auto [watch, error] = Watch::borrow(foreign.descriptor());
  CHECK(error == std::error_code{});
  std::thread feeder([&] { foreign.feed(); });
  CHECK(watch.wait(Ready::read).value == Ready::read);
  feeder.join();
  foreign.eat();
  std::thread closer([&waited = watch] { waited.close(); });
  CHECK(watch.wait(Ready::read).error == Errc::closed);
  closer.join();
}

FIBER_TEST_CASE("a select can wait for a watched descriptor") {
  const Foreign foreign;
  auto [watch, error] = Watch::borrow(foreign.descriptor());
  CHECK(error == std::error_code{});
  CHECK(select(io::on_readable(watch), otherwise()) == 1);
  CHECK(select(io::on_readable(watch), io::on_writable(watch)) == 1);
  auto chooser = spawn([&waited = watch] { return select(io::on_readable(waited)); });
  foreign.feed();
  CHECK(chooser.join() == 0);
}

FIBER_TEST_CASE("a regular file that is watched is always ready") {
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  auto [watch, error] = Watch::adopt(file);
  CHECK(error == std::error_code{});
  CHECK(watch.wait_for_edge(Ready::read).value == Ready::read);
  CHECK(watch.wait(Ready::either).value == Ready::either);
  CHECK(watch.wait(Ready::read).value == Ready::read);
  CHECK(select(io::on_readable(watch), otherwise()) == 0);
  watch.close();
  CHECK(::fcntl(file, F_GETFD) == -1);
  CHECK(watch.wait(Ready::read).error == Errc::closed);
}

FIBER_TEST_CASE("a Watch reads and writes the data of a regular file and of the null device") {
  const Descriptor file(::memfd_create("watched", MFD_CLOEXEC));
  std::array<char, 8> buffer{};
  {
    auto [watch, error] = Watch::borrow(file.get());
    CHECK(error == std::error_code{});
    CHECK(io::write_all(watch, std::as_bytes(std::span("text", 4))).value == 4);
    CHECK(::lseek(file.get(), 0, SEEK_SET) == 0);
    const auto there = std::as_writable_bytes(std::span(buffer));
    CHECK(io::read_some(watch, there).value == 4);
    CHECK(std::string(buffer.data()) == "text");
    CHECK(io::read_some(watch, there).error == Errc::end_of_stream);
    watch.close();
    CHECK(io::read_some(watch, there).error == Errc::closed);
  }
  CHECK(::fcntl(file.get(), F_GETFD) != -1);
  auto [null, error] = Watch::adopt(::open("/dev/null", O_RDWR | O_CLOEXEC));
  CHECK(error == std::error_code{});
  CHECK(io::write_all(null, std::as_bytes(std::span(buffer))).value == buffer.size());
  CHECK(io::read_some(null, std::as_writable_bytes(std::span(buffer))).error ==
        Errc::end_of_stream);
  const int released = null.release();
  CHECK(::fcntl(released, F_GETFD) != -1);
  ::close(released);
}

FIBER_TEST_CASE("a WatchSet waits for many descriptors and returns the ready descriptors") {
  auto [set, error] = WatchSet::create();
  REQUIRE(error == std::error_code{});
  std::array<Foreign, 50> all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(set.add(all[i].descriptor(), Ready::read, i));
  }
  CHECK(set.add(all[0].descriptor(), Ready::read, 0) == std::errc::file_exists);
  std::array<WatchSet::Event, 8> events;
  CHECK(set.wait(events, Deadline::past()).error == Errc::timed_out);
  for (std::size_t i = 0; i < all.size(); i += 7) {
    auto waiter = spawn([&waited = set, &events] { return waited.wait(events); });
    all[i].feed();
    CHECK(waiter.join().value == 1);
    CHECK(events[0].key == i);
    CHECK(events[0].ready == Ready::read);
    CHECK(set.wait(events).value == 1);  // Level-triggered.
    all[i].eat();
  }
  CHECK(set.change(all[3].descriptor(), Ready::write, 33));
  events[1].key = 77;
  CHECK(set.wait(events).value == 1);
  CHECK(events[1].key == 77);  // The call writes no more than it returns.
  CHECK(events[0].key == 33);
  CHECK(set.remove(all[3].descriptor()));
  CHECK(set.wait(events, Deadline::after(1ms)).error == Errc::timed_out);
  auto waiter = spawn([&waited = set, &events] { return waited.wait(events).error; });
  await_parked(runtime, "readable");
  set.close();
  CHECK(waiter.join() == Errc::closed);
}

FIBER_TEST_CASE(
    "a WatchSet reports a hang-up once when no events of the descriptor are requested") {
  Foreign foreign;
  auto [set, error] = WatchSet::create();
  CHECK(error == std::error_code{});
  CHECK(set.add(foreign.descriptor(), Ready::read, 1));
  CHECK(set.change(foreign.descriptor(), Ready::none, 2));
  foreign.hang_up();
  std::array<WatchSet::Event, 2> events;
  CHECK(set.wait(events).value == 1);
  CHECK(events[0].key == 2);
  CHECK(set.wait(events, Deadline::past()).error == Errc::timed_out);
  CHECK(set.change(foreign.descriptor(), Ready::read, 3));
  for (int i = 0; i < 2; ++i) CHECK(set.wait(events).value == 1);
  CHECK(events[0].key == 3);
}

FIBER_TEST_CASE("a stop request ends a wait on a WatchSet, a pipe read and a pipe write") {
  auto [set, without_set] = WatchSet::create();
  CHECK(without_set == std::error_code{});
  auto [pipe, error] = io::make_pipe();
  CHECK(error == std::error_code{});
  auto [full, refused] = io::make_pipe();
  CHECK(refused == std::error_code{});
  std::stop_source source;
  const std::stop_token token = source.get_token();
  auto waits = spawn([&set = set, &token] {
    std::array<WatchSet::Event, 1> events;
    return set.wait(events, token).error;
  });
  auto reads = spawn([&end = pipe.read, &token] {
    std::byte byte{};
    return io::read_some(end, std::span(&byte, 1), token).error;
  });
  auto writes = spawn([&end = full.write, &token] {
    return io::write_all(end, std::vector<std::byte>(1 << 20), token).error;
  });
  await_parked(3);
  (void)source.request_stop();
  CHECK(waits.join() == Errc::cancelled);
  CHECK(reads.join() == Errc::cancelled);
  CHECK(writes.join() == Errc::cancelled);
}

THREAD_TEST_CASE("a plain thread can wait on a WatchSet, and read and write pipes") {
  const Foreign foreign;
  auto [set, without_set] = WatchSet::create();
  CHECK(without_set == std::error_code{});
  CHECK(set.add(foreign.descriptor(), Ready::read, 7));
  std::thread feeder([&] { foreign.feed(); });
  std::array<WatchSet::Event, 2> events;
  CHECK(set.wait(events).value == 1);
  CHECK(events[0].key == 7);
  feeder.join();
  auto [pipe, error] = io::make_pipe();
  CHECK(error == std::error_code{});
  const std::vector<std::byte> sent(300'000);
  std::thread writer([&end = pipe.write, &sent] {
    CHECK(io::write_all(end, sent).value == sent.size());
    end = {};
  });
  std::array<std::byte, 4096> buffer;
  std::size_t total = 0;
  while (const auto part = io::read_some(pipe.read, buffer)) total += part.value;
  CHECK(total == sent.size());
  writer.join();
}

FIBER_TEST_CASE(
    "a pipe transfers bytes, reports the end of the data, and raises no SIGPIPE when its read end "
    "is closed") {
  auto [pipe, error] = io::make_pipe();
  REQUIRE(error == std::error_code{});
  const std::string sent(300'000, 'p');
  auto writer = spawn([&end = pipe.write, &sent] {
    const auto written = io::write_all(end, std::as_bytes(std::span(sent)));
    end = {};
    return written.value;
  });
  std::string received;
  std::array<char, 4096> buffer;
  for (;;) {
    const auto [count, ended] = io::read_some(pipe.read, std::as_writable_bytes(std::span(buffer)));
    if (ended) {
      CHECK(ended == Errc::end_of_stream);
      break;
    }
    received.append(buffer.data(), count);
  }
  CHECK(writer.join() == sent.size());
  CHECK(received == sent);
  auto [other, failed] = io::make_pipe();
  CHECK(failed == std::error_code{});
  CHECK(io::read_some(other.read, std::as_writable_bytes(std::span(buffer)), Deadline::after(1ms))
            .error == Errc::timed_out);
  const auto [written, late] =
      io::write_all(other.write, std::as_bytes(std::span(sent)), Deadline::after(1ms));
  CHECK(late == Errc::timed_out);
  CHECK(written < sent.size());
  other.read = {};
  CHECK(io::write_all(other.write, std::as_bytes(std::span(sent))).error == std::errc::broken_pipe);
}

TEST_SUITE_END();
