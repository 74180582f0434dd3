// Tests waits of fibers in a Scope: the waits block no worker, stay with the file with which they
// began, and end with contexts and limits.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <weft/context.hpp>
#include <weft/wait_group.hpp>

#include "tests/posix/both_ways.hpp"
#include "tests/support/parked.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace std::chrono_literals;
using weft::posix::Scope;
using weft::test::has_hooks;
using weft::test::kSlowdown;
using weft::test::times_blocked;
using weft::test::with_and_without_requests;

TEST_SUITE_BEGIN("posix/waits");

using Ends = std::array<int, 2>;

Ends make_pair() {
  Ends ends{};
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  return ends;
}

void close_all(const Ends& ends) {
  for (const int end : ends) ::close(end);
}

// Without a monitor, a call that blocked the worker would keep the other fibers waiting forever.
FIBER_TEST_CASE_WITH("many fibers of one worker wait for each other in blocking system calls",
                     {.workers = {1}}) {
  if (!has_hooks()) return;
  with_and_without_requests([] {
    constexpr int kPairs = 50;
    weft::WaitGroup group;
    for (int i = 0; i < kPairs; ++i) {
      const Ends ends = make_pair();
      Ends pipe{};
      CHECK(::pipe(pipe.data()) == 0);
      group.go([=] {
        const Scope scope;
        char byte = 0;
        for (int round = 0; round < 20; ++round) {
          CHECK(::recv(ends[0], &byte, 1, 0) == 1);
          CHECK(::write(pipe[1], &byte, 1) == 1);
        }
        close_all({ends[0], pipe[1]});
      });
      group.go([=] {
        const Scope scope;
        char byte = 0;
        for (int round = 0; round < 20; ++round) {
          CHECK(::write(ends[1], "x", 1) == 1);
          pollfd polled{pipe[0], POLLIN, 0};
          CHECK(::poll(&polled, 1, -1) == 1);
          CHECK(::read(pipe[0], &byte, 1) == 1);
        }
        close_all({ends[1], pipe[0]});
      });
    }
    group.wait();
  });
}

// The poll that begins first ends last. On the only helper thread it would delay the other polls.
FIBER_TEST_CASE_WITH(
    "poll() parks the fiber and uses no helper thread when the events include POLLERR",
    {.workers = {1}, .options = {.max_blocking_threads = 1}}) {
  if (!has_hooks()) return;
  with_and_without_requests([] {
    std::array<Ends, 3> pairs{make_pair(), make_pair(), make_pair()};
    std::atomic<std::size_t> begun{0};
    weft::WaitGroup group;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      group.go([&, i] {
        const Scope scope;
        pollfd polled{pairs[i][0], POLLIN | POLLERR | POLLHUP, 0};
        ++begun;
        CHECK(::poll(&polled, 1, -1) == 1);
        CHECK(polled.revents == POLLIN);
        if (i > 0) CHECK(::send(pairs[i - 1][1], "x", 1, 0) == 1);
      });
      while (begun == i) weft::this_fiber::yield();
    }
    CHECK(::send(pairs.back()[1], "x", 1, 0) == 1);
    group.wait();
    for (const Ends& ends : pairs) close_all(ends);
  });
}

FIBER_TEST_CASE("calls outside a posix::Scope or on a plain thread go straight to the C library") {
  if (!has_hooks()) return;
  const Ends ends = make_pair();
  const timeval limit{0, 2000};
  CHECK(::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
  const auto receive = [&] {
    char byte = 0;
    CHECK(::recv(ends[0], &byte, 1, 0) == -1);
    CHECK(errno == EAGAIN);
  };
  { const Scope scope; }
  const weft::this_fiber::NoSwitch here;  // A park would abort.
  receive();
  std::thread(receive).join();
  close_all(ends);
}

FIBER_TEST_CASE(
    "a reader gets the bytes of its original file even if the descriptor number is reused during "
    "the wait") {
  if (!has_hooks()) return;
  with_and_without_requests([] {
    const Ends ends = make_pair();
    const Ends other = make_pair();
    char byte = 0;
    auto reader = weft::spawn([&] {
      const Scope scope;
      CHECK(::recv(ends[0], &byte, 1, 0) == 1);
    });
    weft::test::await_parked(1);
    CHECK(::dup2(other[0], ends[0]) == ends[0]);
    CHECK(::send(other[1], "n", 1, 0) == 1);
    CHECK(::send(ends[1], "o", 1, 0) == 1);
    reader.join();
    CHECK(byte == 'o');
    close_all(ends);
    close_all(other);
  });
}

// The wait uses the original descriptor, because there is no room for a duplicate.
FIBER_TEST_CASE_WITH("a receive and a poll that use io_uring need no free descriptor",
                     {.workers = {1}}) {
  if (!has_hooks()) return;
  const Scope scope;
  const Ends ends = make_pair();
  // A sanitizer may also intercept receives, and must see them.
  pollfd writable{ends[1], POLLOUT, 0};
  if (weft::test::kSanitized ||
      weft::detail::poll_once({&writable, 1}, {}).end == weft::detail::OneShotEnd::refused) {
    weft::test::skip("the system refuses io_uring, or the build has a sanitizer");
    return close_all(ends);
  }
  const auto answer = [&] { CHECK(::send(ends[1], "x", 1, 0) == 1); };
  char byte = 0;
  rlimit before{};
  CHECK(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{static_cast<rlim_t>(ends[1] + 1), before.rlim_max};
  const std::uint64_t blocked = times_blocked("recv", "no descriptor to wait on");
  CHECK(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  auto first = weft::spawn(answer);
  CHECK(::recv(ends[0], &byte, 1, 0) == 1);
  auto second = weft::spawn(answer);
  pollfd polled{ends[0], POLLIN, 0};
  CHECK(::poll(&polled, 1, -1) == 1);
  CHECK(polled.revents == POLLIN);
  CHECK(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(times_blocked("recv", "no descriptor to wait on") == blocked);
  first.join();
  second.join();
  close_all(ends);
}

FIBER_TEST_CASE("several readers and a writer can wait on one descriptor") {
  if (!has_hooks()) return;
  with_and_without_requests([] {
    const Ends ends = make_pair();
    constexpr int kReaders = 4;
    std::atomic<int> got{0};
    weft::WaitGroup group;
    for (int i = 0; i < kReaders; ++i) {
      group.go([&] {
        const Scope scope;
        char byte = 0;
        CHECK(::recv(ends[0], &byte, 1, 0) == 1);
        ++got;
      });
    }
    const std::string large(1 << 20, 'x');
    group.go([&] {
      const Scope scope;
      CHECK(::send(ends[0], large.data(), large.size(), 0) == static_cast<ssize_t>(large.size()));
    });
    weft::this_fiber::yield();
    const Scope scope;
    std::string buffer(1 << 16, ' ');
    for (std::size_t size = 0; size < large.size();) {
      const ssize_t some = ::recv(ends[1], buffer.data(), buffer.size(), 0);
      CHECK(some > 0);
      size += static_cast<std::size_t>(some);
    }
    CHECK(::send(ends[1], "abcd", kReaders, 0) == kReaders);
    group.wait();
    CHECK(got == kReaders);
    close_all(ends);
  });
}

// Tests each call that a context ends.
template <class Call>
void check_ended(Call call) {
  {
    weft::Context context(weft::Deadline::after(1ms));
    const weft::ContextScope scope(context);
    errno = 0;
    CHECK(call() == -1);
    CHECK(errno == ETIMEDOUT);
  }
  weft::Context context;
  const weft::ContextScope scope(context);
  context.cancel();
  errno = 0;
  CHECK(call() == -1);
  CHECK(errno == ECANCELED);
}

FIBER_TEST_CASE("a blocking call fails with ETIMEDOUT or ECANCELED when its context ends") {
  if (!has_hooks()) return;
  with_and_without_requests([] {
    const Scope scope;
    const Ends ends = make_pair();
    char byte = 0;
    check_ended([&] { return ::recv(ends[0], &byte, 1, 0); });
    check_ended([&] { return ::read(ends[0], &byte, 1); });
    pollfd polled{ends[0], POLLIN, 0};
    check_ended([&] { return ::poll(&polled, 1, -1); });
    std::array<pollfd, 2> two{{{ends[0], POLLIN, 0}, {ends[1], POLLIN, 0}}};
    check_ended([&] { return ::poll(two.data(), 2, 60'000); });
    fd_set set;
    check_ended([&] {
      FD_ZERO(&set);
      FD_SET(ends[0], &set);
      return ::select(ends[0] + 1, &set, nullptr, nullptr, nullptr);
    });
    check_ended([&] { return ::usleep(60'000'000); });
    const timespec minute{60, 0};
    timespec rest{};
    check_ended([&] { return ::nanosleep(&minute, &rest); });
    CHECK(rest.tv_sec >= 58);
    close_all(ends);
  });
}

// The handler stays installed, because the last signal may be delivered late.
FIBER_TEST_CASE("a signal does not interrupt the system call of a parked fiber") {
  if (!has_hooks()) return;
  with_and_without_requests([] {
    struct sigaction ignore {};
    ignore.sa_handler = [](int) {};
    CHECK(::sigaction(SIGUSR1, &ignore, nullptr) == 0);
    const Ends ends = make_pair();
    std::atomic<bool> reads{false};
    auto reader = weft::spawn([&] {
      const Scope scope;
      char byte = 0;
      reads = true;
      CHECK(::recv(ends[0], &byte, 1, 0) == 1);
    });
    while (!reads) weft::this_fiber::yield();
    for (int i = 0; i < 20; ++i) {
      CHECK(::kill(::getpid(), SIGUSR1) == 0);
      weft::this_fiber::yield();
    }
    CHECK(::send(ends[1], "x", 1, 0) == 1);
    reader.join();
    close_all(ends);
  });
}

FIBER_TEST_CASE("each connection goes to only one of many fibers that wait in accept()") {
  if (!has_hooks()) return;
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr address{AF_UNIX, {}};  // The system chooses a name.
  CHECK(::bind(listener, &address, sizeof(sa_family_t)) == 0);
  CHECK(::listen(listener, 64) == 0);
  std::array<char, 128> name{};
  socklen_t size = name.size();
  auto* generic = reinterpret_cast<sockaddr*>(name.data());
  CHECK(::getsockname(listener, generic, &size) == 0);
  constexpr int kConnections = 16;
  std::atomic<int> accepted{0};
  weft::WaitGroup group;
  for (int i = 0; i < kConnections; ++i) {
    group.go([&] {
      const Scope scope;
      const int peer = ::accept(listener, nullptr, nullptr);
      CHECK(peer >= 0);
      ++accepted;
      ::close(peer);
    });
  }
  for (int i = 0; i < kConnections; ++i) {
    group.go([&] {
      const Scope scope;
      const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
      CHECK(::connect(socket, generic, size) == 0);
      char byte = 0;
      CHECK(::recv(socket, &byte, 1, 0) == 0);
      ::close(socket);
    });
  }
  group.wait();
  CHECK(accepted == kConnections);
  ::close(listener);
}

TEST_SUITE_END();

}  // namespace
