// Tests the requests that parked fibers make to the kernel through io_uring.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>
#include <weft/detail/one_shot.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/random.hpp"
#include "tests/support/skip.hpp"

using namespace weft;
using namespace std::chrono_literals;
using detail::OneShot;
using detail::OneShotEnd;
using weft::test::await_parked;

TEST_SUITE_BEGIN("io/ring");

namespace {

struct Sockets {
  std::array<int, 2> ends{-1, -1};
  Sockets() { CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0); }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  ~Sockets() {
    for (const int end : ends) ::close(end);
  }
  void feed(char byte = 'x') const { CHECK(::write(ends[1], &byte, 1) == 1); }
};

OneShot receive(int socket, char& byte, const Until& until = {}) {
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return detail::receive_once(socket, message, 0, until);
}

// The value contains the events that have come.
OneShot poll_for(int descriptor, short events, const Until& until = {}) {
  pollfd polled{descriptor, events, 0};
  OneShot ended = detail::poll_once({&polled, 1}, until);
  if (ended.end == OneShotEnd::done) ended.value = polled.revents;
  return ended;
}

std::array<pollfd, 2> both(const Sockets& first, const Sockets& second) {
  return {{{first.ends[0], POLLIN, 7}, {second.ends[0], POLLIN, 7}}};
}

// Call it on a fiber, with a Pin.
bool has_ring() {
  const Sockets sockets;
  if (poll_for(sockets.ends[0], POLLOUT, {}).end != OneShotEnd::refused) return true;
  weft::test::skip("the system refuses io_uring");
  return false;
}

bool is_done(const OneShot& ended, int value) {
  return ended.end == OneShotEnd::done && ended.value == value;
}

#ifdef IORING_SQ_TASKRUN
// Returns, for each ring of this process, the word in which the kernel notes work. All rings have
// the same layout, which the test reads from its own ring.
std::vector<std::uint32_t*> find_notes() {
  io_uring_params parameters{};
  const auto ring = static_cast<int>(::syscall(SYS_io_uring_setup, 1, &parameters));
  CHECK(ring >= 0);
  ::close(ring);
  std::vector<std::uint32_t*> notes;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    unsigned long long offset = 1;
    if (std::sscanf(line.c_str(), "%lx-%*x %*s %llx", &begin, &offset) == 2 &&
        offset == IORING_OFF_SQ_RING && line.ends_with("[io_uring]"))
      notes.push_back(reinterpret_cast<std::uint32_t*>(begin + parameters.sq_off.flags));
  }
  return notes;
}
#endif

}  // namespace

FIBER_TEST_CASE(
    "an io_uring request keeps its file open and returns the result of its system call") {
  const this_fiber::Pin pin;
  if (!has_ring()) return;
  const Sockets sockets;
  const Sockets other;
  char byte = 0;
  sockets.feed('a');
  CHECK(is_done(receive(sockets.ends[0], byte), 1));
  CHECK(byte == 'a');
  CHECK(is_done(receive(-1, byte), -EBADF));
  auto reader = spawn([&] {
    const this_fiber::Pin here;
    char got = 0;
    CHECK(is_done(receive(sockets.ends[0], got), 1));
    CHECK(got == 'b');
  });
  await_parked(1);
  CHECK(::dup2(other.ends[0], sockets.ends[0]) == sockets.ends[0]);
  other.feed('c');
  sockets.feed('b');
  reader.join();
  CHECK(is_done(poll_for(sockets.ends[0], POLLIN, {}), POLLIN));
}

// The kernel notes work after it has queued it. A call that does the work in between does not clear
// the note, and neither does a later call. A worker that repeated the call until the note was
// cleared would never end.
FIBER_TEST_CASE_WITH(
    "a worker does not loop forever when the pending-task-work flag stays set in its io_uring ring",
    {.workers = {1}}) {
#ifdef IORING_SQ_TASKRUN
  const this_fiber::Pin pin;
  if (!has_ring()) return;
  const auto notes = find_notes();
  CHECK(!notes.empty());
  for (std::uint32_t* note : notes) __atomic_fetch_or(note, IORING_SQ_TASKRUN, __ATOMIC_SEQ_CST);
  const Sockets sockets;
  CHECK(is_done(poll_for(sockets.ends[0], POLLOUT, {}), POLLOUT));
#else
  weft::test::skip("the headers of Linux 6.1 are missing");
#endif
}

FIBER_TEST_CASE(
    "a deadline or a stop request ends an io_uring request, which then consumes no more data") {
  const this_fiber::Pin pin;
  if (!has_ring()) return;
  const Sockets sockets;
  char byte = 0;
  CHECK(receive(sockets.ends[0], byte, Deadline::after(1ms)).end == OneShotEnd::timed_out);
  std::stop_source source;
  auto stopped = spawn([&] {
    const this_fiber::Pin here;
    char got = 0;
    const OneShot ended = receive(sockets.ends[0], got, source.get_token());
    CHECK(ended.end == OneShotEnd::stopped);
  });
  await_parked(1);
  source.request_stop();
  stopped.join();
  CHECK(receive(sockets.ends[0], byte, Deadline::past()).end == OneShotEnd::timed_out);
  sockets.feed('a');
  CHECK(is_done(receive(sockets.ends[0], byte, Deadline::past()), 1));
  CHECK(byte == 'a');
}

FIBER_TEST_CASE("a wait for several io_uring requests ends when any of them has ended") {
  const this_fiber::Pin pin;
  if (!has_ring()) return;
  const Sockets first;
  const auto second = std::make_unique<Sockets>();
  auto polled = both(first, *second);
  CHECK(detail::poll_once(polled, Deadline::after(1ms)).end == OneShotEnd::timed_out);
  auto feeder = spawn([&] { first.feed(); });
  CHECK(is_done(detail::poll_once(polled, {}), 1));
  feeder.join();
  CHECK(polled[0].revents == POLLIN);
  CHECK(polled[1].revents == 0);
  // No request refers to the other file any more, so closing its last descriptor ends the
  // connection.
  ::close(second->ends[0]);
  char byte = 0;
  CHECK(::recv(second->ends[1], &byte, 1, MSG_DONTWAIT) == 0);
  second->ends[0] = -1;
  // The result counts all requests that have ended.
  const Sockets third;
  third.feed();
  polled = both(first, third);
  CHECK(is_done(detail::poll_once(polled, Deadline::past()), 2));
  CHECK((polled[0].revents == POLLIN && polled[1].revents == POLLIN));
  // Every entry of the ring is in use.
  std::array<pollfd, 9> many{};
  many.fill({third.ends[1], POLLIN, 0});
  CHECK(detail::poll_once(many, {}).end == OneShotEnd::refused);
  many[8].fd = -1;
  many[7] = {third.ends[1], POLLOUT, 0};
  CHECK(is_done(detail::poll_once(many, {}), 1));
  many[3].fd = 1 << 20;
  CHECK(detail::poll_once(many, {}).end == OneShotEnd::refused);
}

// The fibers of a worker share a ring: whichever request ends first, the others continue.
FIBER_TEST_CASE(
    "many io_uring requests end in any order when data, deadlines or stop requests end them") {
  const this_fiber::Pin pin;
  if (!has_ring()) return;
  test::Random random;
  constexpr std::size_t kFibers = 40;
  for (int round = 0; round < 5; ++round) {
    std::array<Sockets, kFibers> sockets;
    const Sockets quiet;
    std::stop_source source;
    std::array<std::uint64_t, kFibers> kinds{};
    WaitGroup group;
    for (std::size_t i = 0; i < kFibers; ++i) {
      kinds[i] = random.below(5);
      group.go([&, i] {
        const this_fiber::Pin here;
        char byte = 0;
        const int socket = sockets[i].ends[0];
        if (kinds[i] == 0) {
          const OneShot ended = receive(socket, byte, source.get_token());
          CHECK((ended.end == OneShotEnd::stopped || is_done(ended, 1)));
        } else if (kinds[i] == 1) {
          const OneShot ended = receive(socket, byte, Deadline::after(1ms));
          CHECK((ended.end == OneShotEnd::timed_out || is_done(ended, 1)));
        } else {
          CHECK(is_done(kinds[i] == 2 ? poll_for(socket, POLLIN, {}) : receive(socket, byte),
                        kinds[i] == 2 ? POLLIN : 1));
        }
      });
    }
    this_fiber::yield();
    const std::size_t first = random.below(kFibers);
    for (std::size_t i = 0; i < kFibers; ++i) {
      if (i == kFibers / 2) source.request_stop();
      const std::size_t at = (first + i * 7) % kFibers;
      if (kinds[at] > 1 || random.below(2) == 0) sockets[at].feed();
      if (random.below(8) == 0) this_fiber::yield();
    }
    group.wait();
  }
}

// At one moment, more requests end than the ring has places.
FIBER_TEST_CASE(
    "all io_uring requests end when one event ends more of them than the ring has entries") {
  const this_fiber::Pin pin;
  if (!has_ring()) return;
  const int event = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  constexpr int kFibers = 1500;
  WaitGroup group;
  for (int i = 0; i < kFibers; ++i) {
    group.go([=] {
      const this_fiber::Pin here;
      CHECK(is_done(poll_for(event, POLLIN, {}), POLLIN));
    });
  }
  await_parked(kFibers);
  const std::uint64_t one = 1;
  CHECK(::write(event, &one, sizeof one) == sizeof one);
  group.wait();
  ::close(event);
}

FIBER_TEST_CASE(
    "a one-shot io_uring request is refused on a plain thread and when one-shot requests are not "
    "allowed") {
  const this_fiber::Pin pin;
  const Sockets sockets;
  std::thread([&] {
    CHECK(poll_for(sockets.ends[0], POLLOUT, {}).end == OneShotEnd::refused);
  }).join();
  detail::allow_one_shots(false);
  CHECK(poll_for(sockets.ends[0], POLLOUT, {}).end == OneShotEnd::refused);
  detail::allow_one_shots(true);
}

TEST_SUITE_END();
