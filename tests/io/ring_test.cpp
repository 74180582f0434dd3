// Requests of parked fibers to the kernel, by io_uring.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <weft/detail/one_shot.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/random.hpp"

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

// On a fiber, with a Pin.
bool has_ring() {
  const Sockets sockets;
  if (detail::poll_once(sockets.ends[0], POLLOUT, {}).end != OneShotEnd::refused) return true;
  MESSAGE("skipped: the system refuses io_uring");
  return false;
}

bool is_done(const OneShot& ended, int value) {
  return ended.end == OneShotEnd::done && ended.value == value;
}

}  // namespace

FIBER_TEST_CASE("a request ends as the call does, and holds its file") {
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
  CHECK(is_done(detail::poll_once(sockets.ends[0], POLLIN, {}), POLLIN));
}

FIBER_TEST_CASE("a limit or a stop ends a request, which takes nothing afterwards") {
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

// The fibers of a worker share a ring: whichever ends first, the others go on.
FIBER_TEST_CASE("requests of many fibers end in any order, by bytes, limits and stops") {
  const this_fiber::Pin pin;
  if (!has_ring()) return;
  test::Random random;
  constexpr std::size_t kFibers = 40;
  for (int round = 0; round < 5; ++round) {
    std::array<Sockets, kFibers> sockets;
    std::stop_source source;
    std::array<std::uint64_t, kFibers> kinds{};
    WaitGroup group;
    for (std::size_t i = 0; i < kFibers; ++i) {
      kinds[i] = random.below(4);
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
          CHECK(
              is_done(kinds[i] == 2 ? detail::poll_once(socket, POLLIN, {}) : receive(socket, byte),
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

// More than the ring has places for, in one moment.
FIBER_TEST_CASE("one event ends the requests of more fibers than the ring has places") {
  const this_fiber::Pin pin;
  if (!has_ring()) return;
  const int event = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  constexpr int kFibers = 1500;
  WaitGroup group;
  for (int i = 0; i < kFibers; ++i) {
    group.go([=] {
      const this_fiber::Pin here;
      CHECK(is_done(detail::poll_once(event, POLLIN, {}), POLLIN));
    });
  }
  await_parked(kFibers);
  const std::uint64_t one = 1;
  CHECK(::write(event, &one, sizeof one) == sizeof one);
  group.wait();
  ::close(event);
}

FIBER_TEST_CASE("without io_uring, and on a plain thread, a request is refused") {
  const this_fiber::Pin pin;
  const Sockets sockets;
  std::thread([&] {
    CHECK(detail::poll_once(sockets.ends[0], POLLOUT, {}).end == OneShotEnd::refused);
  }).join();
  detail::allow_one_shots(false);
  CHECK(detail::poll_once(sockets.ends[0], POLLOUT, {}).end == OneShotEnd::refused);
  detail::allow_one_shots(true);
}

TEST_SUITE_END();
