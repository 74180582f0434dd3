// Compares each call on a fiber in a Scope with the same call on a plain thread.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "tests/posix/both_ways.hpp"

namespace {

using weft::test::check_both_ways;
using weft::test::has_hooks;
using weft::test::Log;
using weft::test::note;

using weft::test::loopback;
using weft::test::Pair;
using weft::test::set_limit;

TEST_SUITE_BEGIN("posix/calls");

FIBER_TEST_CASE("receives in a posix::Scope return the same results as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    std::array<char, 64> buffer{};
    const Pair pair;
    note(log, ::send(pair.there(), "abcdef", 6, 0));
    note(log, ::recv(pair.here(), buffer.data(), 2, 0));
    note(log, ::recv(pair.here(), buffer.data(), 64, MSG_PEEK));
    note(log, ::read(pair.here(), buffer.data(), 1));
    std::array<iovec, 2> parts{{{buffer.data(), 1}, {buffer.data() + 1, 30}}};
    note(log, ::readv(pair.here(), parts.data(), 2));
    note(log, ::recv(pair.here(), buffer.data(), 1, MSG_DONTWAIT));
    set_limit(pair.here(), SO_RCVTIMEO, 2000);
    note(log, ::recv(pair.here(), buffer.data(), 1, 0));
    note(log, ::read(pair.here(), buffer.data(), 1));
    note(log, ::read(pair.here(), buffer.data(), 0));
    note(log, ::recvfrom(pair.here(), buffer.data(), 1, 0, nullptr, nullptr));
    ::fcntl(pair.here(), F_SETFL, O_NONBLOCK);
    note(log, ::recv(pair.here(), buffer.data(), 1, 0));
    note(log, ::read(pair.here(), buffer.data(), 1));
    ::shutdown(pair.there(), SHUT_WR);
    note(log, ::recv(pair.here(), buffer.data(), 1, 0));
    note(log, ::recv(pair.here(), buffer.data(), 1, MSG_OOB));
    note(log, ::recv(-1, buffer.data(), 1, 0));
    note(log, ::read(-1, buffer.data(), 1));
    note(log, ::readv(pair.here(), parts.data(), 0));
  });
}

FIBER_TEST_CASE(
    "a receive with MSG_WAITALL waits for all bytes, and returns fewer bytes only when the stream "
    "ends") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const Pair pair;
    std::thread writer([&] {
      for (int i = 0; i < 5; ++i) {
        (void)::send(pair.there(), "abcd", 4, 0);
        std::this_thread::yield();
      }
      ::shutdown(pair.there(), SHUT_WR);
    });
    std::array<char, 16> buffer{};
    note(log, ::recv(pair.here(), buffer.data(), 16, MSG_WAITALL));
    note(log, ::recv(pair.here(), buffer.data(), 16, MSG_WAITALL));
    note(log, ::recv(pair.here(), buffer.data(), 16, MSG_WAITALL));
    writer.join();
  });
}

FIBER_TEST_CASE("a large send in a posix::Scope returns after the socket has accepted all bytes") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const std::string large(1 << 20, 'x');
    for (int way = 0; way < 4; ++way) {
      const Pair pair;
      std::thread reader([&] {
        std::string buffer(1 << 16, ' ');
        std::size_t got = 0;
        while (got < large.size()) {
          const ssize_t size = ::recv(pair.there(), buffer.data(), buffer.size(), 0);
          if (size <= 0) break;
          got += static_cast<std::size_t>(size);
        }
        CHECK(got == large.size());
      });
      std::array<iovec, 2> parts{{{const_cast<char*>(large.data()), 3000},
                                  {const_cast<char*>(large.data()) + 3000, large.size() - 3000}}};
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = 2;
      if (way == 0) note(log, ::send(pair.here(), large.data(), large.size(), 0));
      if (way == 1) note(log, ::write(pair.here(), large.data(), large.size()));
      if (way == 2) note(log, ::writev(pair.here(), parts.data(), 2));
      if (way == 3) note(log, ::sendmsg(pair.here(), &message, 0));
      reader.join();
    }
  });
}

FIBER_TEST_CASE(
    "a send that times out returns the number of bytes sent, and the next send fails with EAGAIN") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const Pair pair;
    const std::string large(1 << 22, 'x');
    set_limit(pair.here(), SO_SNDTIMEO, 2000);
    const ssize_t sent = ::send(pair.here(), large.data(), large.size(), 0);
    note(log, sent > 0 && sent < static_cast<ssize_t>(large.size()));
    note(log, ::send(pair.here(), large.data(), large.size(), 0));
    ::shutdown(pair.there(), SHUT_RD);
    note(log, ::send(pair.here(), "x", 1, MSG_NOSIGNAL));
    note(log, ::send(-1, "x", 1, 0));
    note(log, ::write(-1, "x", 1));
  });
}

FIBER_TEST_CASE(
    "reads from and writes to pipes in a posix::Scope return the same results as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    std::array<int, 2> ends{};
    CHECK(::pipe(ends.data()) == 0);
    const std::string large(1 << 18, 'x');
    std::thread reader([&] {
      std::string buffer(5000, ' ');
      std::size_t got = 0;
      while (got < large.size()) {
        const ssize_t size = ::read(ends[0], buffer.data(), buffer.size());
        if (size <= 0) break;
        got += static_cast<std::size_t>(size);
      }
      CHECK(got == large.size());
    });
    note(log, ::write(ends[1], large.data(), large.size()));
    reader.join();
    std::thread writer([&] { CHECK(::write(ends[1], "abc", 3) == 3); });
    std::array<char, 8> buffer{};
    note(log, ::read(ends[0], buffer.data(), buffer.size()));
    writer.join();
    note(log, ::write(ends[1], "", 0));
    note(log, ::write(ends[0], "x", 1));
    ::close(ends[1]);
    note(log, ::read(ends[0], buffer.data(), buffer.size()));
    ::close(ends[0]);
  });
}

FIBER_TEST_CASE(
    "reads of files and eventfds in a posix::Scope return the same results as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    std::array<char, 20> name{"/tmp/weft-XXXXXX"};
    const int file = ::mkstemp(name.data());
    const std::string text(10'000, 'x');
    note(log, ::write(file, text.data(), text.size()));
    note(log, ::fsync(file));
    note(log, ::fdatasync(file));
    ::lseek(file, 0, SEEK_SET);
    std::string buffer(6000, ' ');
    for (int i = 0; i < 3; ++i) note(log, ::read(file, buffer.data(), buffer.size()));
    note(log, ::fsync(-1));
    ::close(file);
    ::unlink(name.data());
    const int event = ::eventfd(0, 0);
    std::uint64_t one = 1;
    std::thread writer([&] { CHECK(::write(event, &one, sizeof one) == 8); });
    std::uint64_t got = 0;
    note(log, ::read(event, &got, sizeof got));
    note(log, static_cast<long>(got));
    writer.join();
    note(log, ::read(event, &got, 4));
    ::close(event);
  });
}

FIBER_TEST_CASE(
    "poll() for POLLOUT does not return early when the peer shuts down its sending side") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const Pair pair;
    while (::send(pair.here(), "x", 1, MSG_DONTWAIT) == 1) {
    }
    CHECK(::shutdown(pair.there(), SHUT_WR) == 0);
    pollfd polled{pair.here(), POLLOUT, 0};
    note(log, ::poll(&polled, 1, 2));
    log.push_back(polled.revents);
  });
}

FIBER_TEST_CASE("poll(), ppoll() and select() report readiness and time out as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const Pair quiet;
    const Pair loud;
    const auto look = [&](int result, const std::array<pollfd, 3>& polled) {
      note(log, result);
      for (const pollfd& one : polled) log.push_back(one.revents);
    };
    std::array<pollfd, 3> polled{
        {{quiet.here(), POLLIN, 0}, {-1, POLLIN, 0}, {loud.here(), POLLIN, 0}}};
    look(::poll(polled.data(), 3, 2), polled);
    const timespec short_time{0, 2'000'000};
    look(::ppoll(polled.data(), 3, &short_time, nullptr), polled);
    std::thread writer([&] { (void)::send(loud.there(), "x", 1, 0); });
    look(::poll(polled.data(), 3, -1), polled);
    writer.join();
    polled[1] = {quiet.here(), POLLOUT | POLLIN, 0};
    look(::poll(polled.data(), 3, -1), polled);
    polled[1].fd = 1 << 20;
    look(::poll(polled.data(), 3, -1), polled);
    pollfd urgent{quiet.here(), POLLPRI, 0};
    note(log, ::poll(&urgent, 1, 2));
    note(log, ::poll(nullptr, 0, 2));
    fd_set reads;
    FD_ZERO(&reads);
    FD_SET(quiet.here(), &reads);
    timeval time{0, 2000};
    note(log, ::select(quiet.here() + 1, &reads, nullptr, nullptr, &time));
    note(log, FD_ISSET(quiet.here(), &reads) ? 1 : 0);
    note(log, time.tv_sec + time.tv_usec);
    FD_SET(quiet.here(), &reads);
    FD_SET(loud.here(), &reads);
    fd_set writes = reads;
    note(log, ::select(std::max(quiet.here(), loud.here()) + 1, &reads, &writes, nullptr, nullptr));
    note(log, FD_ISSET(quiet.here(), &reads) ? 1 : 0);
    note(log, FD_ISSET(loud.here(), &reads) ? 1 : 0);
    sigset_t usual;
    ::sigemptyset(&usual);
    for (const sigset_t* mask : {static_cast<const sigset_t*>(nullptr), &std::as_const(usual)}) {
      FD_ZERO(&reads);
      FD_SET(quiet.here(), &reads);
      note(log, ::pselect(quiet.here() + 1, &reads, nullptr, nullptr, &short_time, mask));
      note(log, FD_ISSET(quiet.here(), &reads) ? 1 : 0);
    }
  });
}

// After a send, the next wait for its socket begins without a check of the socket.
FIBER_TEST_CASE("poll() after a send returns the same results in a posix::Scope as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const Pair pair;
    const Pair quiet;
    const Pair closed;
    ::shutdown(closed.there(), SHUT_WR);
    const int file = ::memfd_create("file", MFD_CLOEXEC);
    const auto ask = [&](std::vector<pollfd> others, int milliseconds, bool is_answered = false) {
      note(log, ::send(pair.here(), "q", 1, 0));
      others.push_back({pair.here(), POLLIN, 7});
      std::thread peer([&] {
        if (is_answered) (void)::send(pair.there(), "a", 1, 0);
      });
      note(log, ::poll(others.data(), others.size(), milliseconds));
      peer.join();
      for (const pollfd& one : others) log.push_back(one.revents);
      pollfd look{pair.here(), POLLIN, 0};
      note(log, ::poll(&look, 1, 0));
      char byte = 0;
      if (is_answered) note(log, ::recv(pair.here(), &byte, 1, 0));
      log.push_back(byte);
    };
    ask({{quiet.here(), POLLIN, 7}}, 2);
    ask({{quiet.here(), POLLIN, 7}, {-1, POLLIN, 7}}, -1, true);
    ask({{quiet.here(), POLLIN, 7}, {quiet.here(), POLLOUT, 0}}, -1);
    ask({{pair.here(), POLLIN, 0}}, -1, true);
    ask({{1 << 20, POLLIN, 0}, {quiet.here(), POLLOUT, 0}}, -1);
    ask({{file, POLLIN, 0}}, -1);
    ask({{closed.here(), POLLOUT, 0}, {closed.here(), POLLIN, 0}}, -1);
    ask({{closed.here(), POLLRDHUP, 0}, {quiet.here(), POLLPRI, 0}}, -1);
    ask({{quiet.here(), 0, 7}, {quiet.there(), POLLRDHUP, 7}}, -1, true);
    ask(std::vector<pollfd>(7, {quiet.here(), POLLIN, 7}), 2);
    ask(std::vector<pollfd>(7, {quiet.here(), POLLIN, 7}), -1, true);
    ask(std::vector<pollfd>(8, {quiet.here(), POLLIN, 7}), -1, true);
    ::close(file);
  });
}

FIBER_TEST_CASE(
    "poll() returns when the peer hangs up, and epoll_wait() returns when an event arrives") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const Pair pair;
    pollfd polled{pair.here(), POLLIN, 0};
    std::thread ender([&] { ::shutdown(pair.there(), SHUT_RDWR); });
    note(log, ::poll(&polled, 1, -1));
    ender.join();
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    const Pair other;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = 42;
    note(log, ::epoll_ctl(epoll, EPOLL_CTL_ADD, other.here(), &event));
    epoll_event found{};
    note(log, ::epoll_wait(epoll, &found, 1, 2));
    std::thread writer([&] { (void)::send(other.there(), "x", 1, 0); });
    note(log, ::epoll_wait(epoll, &found, 1, -1));
    note(log, static_cast<long>(found.data.u64));
    writer.join();
    note(log, ::epoll_pwait(epoll, &found, 1, 2, nullptr));
    char byte = 0;
    note(log, ::recv(other.here(), &byte, 1, 0));
    note(log, ::epoll_pwait(epoll, &found, 1, 2, nullptr));
    note(log, ::epoll_wait(epoll, &found, 0, -1));
    note(log, ::epoll_wait(-1, &found, 1, -1));
    ::close(epoll);
  });
}

FIBER_TEST_CASE(
    "sleeps in a posix::Scope take their full time and return the same results as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    timespec before{};
    timespec after{};
    ::clock_gettime(CLOCK_MONOTONIC, &before);
    const timespec time{0, 3'000'000};
    note(log, ::nanosleep(&time, nullptr));
    note(log, ::usleep(3000));
    note(log, ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr));
    timespec until{};
    ::clock_gettime(CLOCK_REALTIME, &until);
    note(log, ::clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, nullptr));
    note(log, ::sleep(0));
    const timespec wrong{0, -1};
    note(log, ::nanosleep(&wrong, nullptr));
    note(log, ::clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, nullptr));
    ::clock_gettime(CLOCK_MONOTONIC, &after);
    const long took =
        (after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec;
    note(log, took >= 9'000'000);
  });
}

FIBER_TEST_CASE(
    "waitpid() and getaddrinfo() in a posix::Scope return the same results as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    for (const pid_t which : {1, -1}) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::usleep(2000);
        ::_exit(7);
      }
      int status = 0;
      note(log, ::waitpid(which == 1 ? child : which, &status, 0) == child);
      note(log, status);
      note(log, ::waitpid(child, &status, 0));
    }
    for (const char* name : {"127.0.0.1", "localhost"}) {
      addrinfo* found = nullptr;
      addrinfo hints{};
      hints.ai_family = AF_INET;
      hints.ai_socktype = SOCK_STREAM;
      note(log, ::getaddrinfo(name, "80", &hints, &found));
      if (found != nullptr) ::freeaddrinfo(found);
    }
    const sockaddr_in address = loopback(80);
    std::array<char, 64> host{};
    note(log, ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), sizeof address,
                            host.data(), host.size(), nullptr, 0, 0));
  });
}

TEST_SUITE_END();

}  // namespace
