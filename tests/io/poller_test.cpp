#include "io/poller.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <ostream>
#include <thread>
#include <utility>
#include <vector>
#include <weft/descriptor.hpp>

#include "base/memory_limits.hpp"
#include "base/thread.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace std::chrono_literals;
using io::IoHandle;
using io::IoUse;
using io::Poller;
using io::WaitOutcome;

TEST_SUITE_BEGIN("io/poller");

namespace {

// Opens a socket pair, one end of which a poller watches.
class Watched {
 public:
  explicit Watched(Poller& poller) {
    std::array<int, 2> ends{};
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
    CHECK(poller.add(ends[0], handle_) == std::error_code{});
    other_end_ = ends[1];
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() {
    handle_->poller().remove(*handle_);
    ::close(other_end_);
  }
  IoHandle* operator->() const noexcept { return handle_; }
  // Writes a byte, after a wait for room if there is none.
  void feed() const {
    while (::write(other_end_, "x", 1) != 1) std::this_thread::yield();
  }
  [[nodiscard]] bool eat() const {
    char byte = 0;
    return ::read(handle_->descriptor(), &byte, 1) == 1;
  }

 private:
  IoHandle* handle_ = nullptr;
  int other_end_ = -1;
};

// Runs a plain thread that polls as a sleeping worker does.
class PollingThread {
 public:
  explicit PollingThread(Poller& poller)
      : poller_(poller), thread_([this] {
          while (!stopping_.load()) (void)poller_.wait(Deadline::never());
          stopped_.store(true);
        }) {}
  ~PollingThread() {
    stopping_.store(true);
    // Another polling thread may take an interrupt that was meant for this thread.
    while (!stopped_.load()) {
      poller_.interrupt();
      std::this_thread::yield();
    }
    thread_.join();
  }

 private:
  Poller& poller_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE("a poller uses and closes descriptor 0 like any other when standard input is closed") {
  const int input = ::dup(STDIN_FILENO);
  ::close(STDIN_FILENO);
  CHECK_NOTHROW(Poller());
  CHECK(::dup(input) == STDIN_FILENO);
  { const weft::Descriptor zero(STDIN_FILENO); }
  CHECK(::fcntl(STDIN_FILENO, F_GETFD) == -1);
  CHECK(weft::base::count_threads() != 0);
  CHECK(weft::base::count_mappings() != 0);
  CHECK(::dup2(input, STDIN_FILENO) == STDIN_FILENO);
  ::close(input);
}

TEST_CASE("an interrupt ends a poll without a deadline") {
  const test::TestGuard guard("an interrupt ends a wait that would go on forever");
  Poller poller;
  std::thread sleeper([&] { CHECK(poller.wait(Deadline::never()) == 0); });
  poller.interrupt();
  sleeper.join();
}

TEST_CASE("several interrupts that precede a poll end only that poll") {
  const test::TestGuard guard("interrupts before a wait end one wait, however many they are");
  Poller poller;
  for (int i = 0; i < 100; ++i) poller.interrupt();
  CHECK(poller.wait(Deadline::never()) == 0);
  const Deadline deadline = Deadline::after(2ms);
  CHECK(poller.wait(deadline) == 0);
  CHECK(deadline.passed());
}

TEST_CASE(
    "an interrupt stays pending during polls that do not sleep and ends the next poll that "
    "sleeps") {
  const test::TestGuard guard("a look leaves an interrupt to waits that sleep");
  Poller poller;
  const Watched watched(poller);
  poller.interrupt();
  for (int i = 0; i < 3; ++i) CHECK(poller.wait(Deadline::past()) == 0);
  CHECK(poller.wait(Deadline::never()) == 0);
}

TEST_CASE("a poll without events lasts until its deadline") {
  Poller poller;
  for (const auto duration : {1us, 100us, 1500us}) {
    const Deadline deadline = Deadline::after(duration);
    CHECK(poller.wait(deadline) == 0);
    CHECK(deadline.passed());
  }
}

TEST_CASE(
    "a poller refuses a descriptor that cannot be polled, and the caller keeps the descriptor") {
  Poller poller;
  IoHandle* handle = nullptr;
  CHECK(poller.add(-1, handle) == std::errc::bad_file_descriptor);
  CHECK(handle == nullptr);
  CHECK(!poller.watches_anything());
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  CHECK(poller.add(file, handle) == std::errc::operation_not_permitted);
  CHECK(!poller.watches_anything());
  CHECK(::close(file) == 0);
}

TEST_CASE("watches_anything() returns true while a poller has a watched descriptor") {
  Poller poller;
  CHECK(!poller.watches_anything());
  {
    const Watched first(poller);
    CHECK(poller.watches_anything());
    const Watched second(poller);
    CHECK(poller.watches_anything());
  }
  CHECK(!poller.watches_anything());
}

TEST_CASE("an edge that arrived before a wait ends the wait at once") {
  Poller poller;
  const Watched watched(poller);
  watched.feed();
  CHECK(poller.wait(Deadline::past()) == 0);
  CHECK(watched->wait_readable(Deadline::never()) == WaitOutcome::ready);
  CHECK(watched->wait_readable(Deadline::past()) == WaitOutcome::timed_out);
  CHECK(watched->wait_writable(Deadline::past()) == WaitOutcome::ready);
}

TEST_CASE(
    "worth_trying() returns true until a system call would block, and again after the kernel "
    "reports an edge") {
  Poller poller;
  const Watched watched(poller);
  CHECK(watched->read().worth_trying());
  watched->read().set_drained(true);
  CHECK(!watched->read().worth_trying());
  watched.feed();
  CHECK(poller.wait(Deadline::past()) == 0);
  CHECK(watched->read().worth_trying());
  // The poller has delivered the edge, but no fiber has tried a call yet.
  CHECK(watched->read().worth_trying());
  CHECK(watched->wait_readable(Deadline::past()) == WaitOutcome::timed_out);
}

TEST_CASE("worth_trying() always returns true after a hang-up") {
  Poller poller;
  std::array<int, 2> ends{};
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
  IoHandle* handle = nullptr;
  CHECK(!poller.add(ends[0], handle));
  ::close(ends[1]);
  CHECK(poller.wait(Deadline::past()) == 0);
  handle->read().set_drained(true);
  CHECK(handle->read().worth_trying());
  handle->read().set_drained(true);
  CHECK(handle->read().worth_trying());
  poller.remove(*handle);
}

TEST_CASE("a polling thread wakes a plain thread that waits for a descriptor") {
  const test::TestGuard guard("a plain thread that waits is woken by the thread that polls");
  Poller poller;
  const PollingThread polling(poller);
  const Watched watched(poller);
  std::thread feeder([&] {
    for (int i = 0; i < 1000; ++i) watched.feed();
  });
  for (int eaten = 0; eaten < 1000;) {
    if (watched.eat()) {
      ++eaten;
    } else {
      CHECK(watched->wait_readable(Deadline::never()) == WaitOutcome::ready);
    }
  }
  feeder.join();
}

TEST_CASE("closing a descriptor ends a current wait and all later waits") {
  const test::TestGuard guard("closing ends a wait, and all later ones");
  Poller poller;
  const PollingThread polling(poller);
  for (int i = 0; i < 200; ++i) {
    const Watched watched(poller);
    const IoUse use(watched.operator->());
    std::thread waiter([&] {
      const Deadline deadline = i % 2 == 0 ? Deadline::never() : Deadline::after(1h);
      CHECK(watched->wait_readable(deadline) == WaitOutcome::closed);
    });
    CHECK(watched->close());
    CHECK(!watched->close());
    waiter.join();
    CHECK(watched->wait_readable(Deadline::never()) == WaitOutcome::closed);
    CHECK(watched->wait_writable(Deadline::past()) == WaitOutcome::closed);
    CHECK(!watched->enter());
  }
}

TEST_CASE(
    "closing a descriptor takes effect only after the calls that use the descriptor have ended") {
  Poller poller;
  const Watched watched(poller);
  const int descriptor = watched->descriptor();
  {
    const IoUse use(watched.operator->());
    CHECK(watched->close());
    CHECK(::fcntl(descriptor, F_GETFD) >= 0);
    CHECK(poller.watches_anything());
  }
  CHECK(::fcntl(descriptor, F_GETFD) < 0);
  CHECK(!poller.watches_anything());
}

TEST_CASE("no edge is lost when a wait's deadline and the poller race to end the wait") {
  const test::TestGuard guard("the clock and the poller compete for a wait, and no edge is lost");
  const unsigned bytes = 5000 / test::kSlowdown;
  Poller poller;
  // Two threads poll, so that one can deliver an edge while the other fetches the next edge.
  const PollingThread polling(poller);
  const PollingThread polling_too(poller);
  const Watched watched(poller);
  std::thread feeder([&] {
    for (unsigned i = 0; i < bytes; ++i) {
      watched.feed();
      if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 128));
    }
  });
  unsigned eaten = 0;
  unsigned waits = 0;
  while (eaten < bytes) {
    if (watched.eat()) {
      ++eaten;
    } else {
      const auto patience = std::chrono::microseconds(++waits % 64);
      CHECK(watched->wait_readable(Deadline::after(patience)) != WaitOutcome::closed);
    }
  }
  feeder.join();
}

TEST_CASE(
    "changing the deadline of a descriptor ends a wait that began with the earlier deadline") {
  const test::TestGuard guard(
      "changing the deadline ends a wait that began with the earlier deadline");
  Poller poller;
  const PollingThread polling(poller);
  const Watched watched(poller);
  for (int i = 0; i < 500; ++i) {
    watched->read().set_deadline(i % 2 == 0 ? Deadline::never() : Deadline::after(1h));
    std::thread waiter([&] {
      WaitOutcome outcome = WaitOutcome::ready;  // A changed deadline causes a false alarm.
      while (outcome == WaitOutcome::ready) outcome = watched->wait_readable(Deadline::never());
      CHECK(outcome == WaitOutcome::timed_out);
    });
    watched->read().set_deadline(Deadline::past());
    waiter.join();
  }
}

TEST_CASE("a reused descriptor record ignores late events of its previous descriptor") {
  const test::TestGuard guard("records are recycled, and events for an earlier descriptor");
  const unsigned rounds = 10'000 / test::kSlowdown;
  Poller poller;
  const PollingThread polling(poller);
  const PollingThread polling_too(poller);
  std::vector<const IoHandle*> seen;
  for (unsigned i = 0; i < rounds; ++i) {
    // Events for this descriptor may be pending when the next descriptor gets the same record and
    // number.
    {
      const Watched early(poller);
      early.feed();
    }
    const Watched watched(poller);
    seen.push_back(watched.operator->());
    std::thread feeder;
    if (i % 100 == 0) {
      feeder = std::thread([&] { watched.feed(); });
    } else {
      watched.feed();
    }
    while (!watched.eat()) {
      CHECK(watched->wait_readable(Deadline::never()) == WaitOutcome::ready);
    }
    if (feeder.joinable()) feeder.join();
  }
  CHECK(std::count(seen.begin(), seen.end(), seen.front()) == rounds);
}

TEST_CASE("a poller attributes events of many descriptors to the right descriptors") {
  const test::TestGuard guard("many descriptors at once are told apart");
  Poller poller;
  std::vector<std::unique_ptr<Watched>> all;
  for (int i = 0; i < 400; ++i) all.push_back(std::make_unique<Watched>(poller));
  const auto look = [&] {
    // Each poll fetches at most one full buffer of events.
    for (int i = 0; i < 8; ++i) CHECK(poller.wait(Deadline::past()) == 0);
  };
  look();
  for (const auto& watched : all) {
    CHECK(watched->operator->()->wait_readable(Deadline::past()) == WaitOutcome::timed_out);
  }
  for (std::size_t i = 0; i < all.size(); i += 3) all[i]->feed();
  look();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const WaitOutcome expected = i % 3 == 0 ? WaitOutcome::ready : WaitOutcome::timed_out;
    CHECK((*all[i])->wait_readable(Deadline::past()) == expected);
  }
}

detail::Waker note_nothing(detail::IoWatch& /*watch*/) noexcept { return {}; }

TEST_CASE(
    "removing a watch never blocks when the watch was never added, or when close() has notified "
    "it") {
  const weft::test::TestGuard guard("removing a watch");
  Poller poller;
  Watched watched(poller);
  detail::IoWatch watch{&note_nothing};
  watched->read().remove_watch(watch);
  watched->read().add_watch(watch);
  watched->read().remove_watch(watch);
  watched->read().add_watch(watch);
  (void)watched->close();
  watched->read().remove_watch(watch);
}

TEST_SUITE_END();
