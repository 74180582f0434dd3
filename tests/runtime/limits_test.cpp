// Tests limits that the system sets for a process. Each case is a child process, because it cannot
// raise its limits again.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <string>
#include <system_error>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/child.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::test::check_child;
using weft::test::kNotPossibleHere;
using weft::test::status_of_child;

// Runs fibers that park, sleep and end.
int use_a_runtime() {
  return weft::run({.workers = 2}, [] {
    weft::Channel<int> channel;
    weft::WaitGroup group;
    for (int i = 0; i < 50; ++i) {
      group.go([&] {
        weft::this_fiber::sleep_for(1ms);
        (void)channel.send(1);
      });
    }
    int sum = 0;
    for (int i = 0; i < 50; ++i) sum += channel.receive().value_or(0);
    group.wait();
    return sum == 50 ? 0 : 1;
  });
}

TEST_SUITE_BEGIN("runtime/limits");

TEST_CASE(
    "a runtime's constructor throws an error that names the descriptor limit when no descriptor is "
    "free") {
  if (weft::test::kSanitized) {
    return weft::test::skip("a sanitizer opens descriptors to inspect objects");
  }
  CHECK(status_of_child([] {
          const rlimit none{3, 3};
          if (setrlimit(RLIMIT_NOFILE, &none) != 0) return kNotPossibleHere;
          for (int i = 3; i < 64; ++i) close(i);
          try {
            return use_a_runtime() == 0 ? 1 : 2;
          } catch (const std::system_error& error) {
            if (error.code() != std::errc::too_many_files_open) return 3;
            const std::string text = error.what();
            return text.find("ulimit -n") != std::string::npos ? 0 : 4;
          }
        }) == 0);
}

TEST_CASE("a runtime runs fibers when all present and future memory is locked") {
  if (weft::test::kSanitized) return weft::test::skip("a sanitizer maps too much to be locked");
  const int status = status_of_child([] {
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return kNotPossibleHere;
    return use_a_runtime();
  });
  check_child(status, "the system refuses to lock all memory");
}

TEST_CASE("a runtime runs fibers under a filter that refuses newer system calls") {
  const int status = status_of_child([] {
    const auto number = static_cast<unsigned>(offsetof(seccomp_data, nr));
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 441, 1, 0),  // epoll_pwait2
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 440, 0, 1),  // process_madvise
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{std::size(filter), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      return kNotPossibleHere;
    }
    // Watches a socket, so that workers sleep in the poller.
    return weft::run({.workers = 2}, [] {
      auto listener = weft::net::TcpListener::listen(weft::net::Address::loopback_v4(0));
      if (listener.error) return 2;
      auto acceptor = weft::spawn(
          [&] { return listener.value.accept(weft::Deadline::after(20ms)).error ? 0 : 3; });
      weft::this_fiber::sleep_for(5ms);
      return acceptor.join();
    });
  });
  check_child(status, "the system refuses filters of system calls");
}

// The system call fails with this error from now on.
bool forbid(int call, unsigned error) {
  const auto number = static_cast<unsigned>(offsetof(seccomp_data, nr));
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_CASE("accept() returns the error when a system call filter forbids the call") {
  const int status = status_of_child([] {
    if (!forbid(SYS_accept4, EPERM)) return kNotPossibleHere;
    return weft::run({.workers = 1}, [] {
      auto listener = weft::net::TcpListener::listen(weft::net::Address::loopback_v4(0));
      auto client = weft::net::TcpStream::connect(listener.value.local_address().value);
      if (listener.error || client.error) return 2;
      const auto accepted = listener.value.accept(weft::Deadline::after(60s));
      return accepted.error == std::errc::operation_not_permitted ? 0 : 3;
    });
  });
  check_child(status, "the system refuses filters of system calls");
}

TEST_CASE(
    "accept() stops waiting for a free descriptor and returns the error when the system call fails "
    "for another reason") {
  const int status = status_of_child([] {
    int errors[2] = {};
    if (pipe2(errors, O_NONBLOCK) != 0 || dup2(errors[1], STDERR_FILENO) < 0) return 1;
    if (!forbid(SYS_accept4, EMFILE)) return kNotPossibleHere;
    return weft::run({.workers = 1}, [&] {
      auto listener = weft::net::TcpListener::listen(weft::net::Address::loopback_v4(0));
      auto client = weft::net::TcpStream::connect(listener.value.local_address().value);
      if (listener.error || client.error) return 2;
      auto accepted =
          weft::spawn([&] { return listener.value.accept(weft::Deadline::after(60s)).error; });
      // A line on stderr shows that the shortage lasts.
      for (char c = 0; read(errors[0], &c, 1) != 1;) weft::this_fiber::sleep_for(1ms);
      if (!forbid(SYS_accept4, EPERM)) return kNotPossibleHere;
      return accepted.join() == std::errc::operation_not_permitted ? 0 : 3;
    });
  });
  check_child(status, "the system refuses filters of system calls");
}

TEST_CASE("the error for a thread that a runtime cannot start names the thread and the limit") {
  if (weft::test::kSanitized) return weft::test::skip("some sanitizers start threads");
  const int status = status_of_child([] {
    // The C library uses clone() if clone3() does not exist.
    if (!forbid(SYS_clone3, ENOSYS) || !forbid(SYS_clone, EAGAIN)) return kNotPossibleHere;
    try {
      const weft::Runtime runtime({.workers = 3});
      return 2;
    } catch (const std::system_error& refused) {
      const std::string text = refused.what();
      const bool tells_which = text.find("thread for worker 1 of 3") != std::string::npos;
      const bool tells_limit = text.find("ulimit -u") != std::string::npos;
      return tells_which && tells_limit ? 0 : 3;
    }
  });
  check_child(status, "the system refuses filters of system calls");
}

TEST_CASE("a process with a runtime continues after SIGSTOP and SIGCONT") {
  int beats[2] = {};
  REQUIRE(pipe(beats) == 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30 * weft::test::kSlowdown);
    close(beats[0]);
    signal(SIGPIPE, SIG_IGN);
    // Sleeps as long as another process listens.
    _exit(weft::run({.workers = 2}, [&] {
      while (write(beats[1], "x", 1) == 1) weft::this_fiber::sleep_for(1ms);
      return 0;
    }));
  }
  close(beats[1]);
  for (int i = 0; i < 5; ++i) {
    char all[4096];
    CHECK(read(beats[0], all, sizeof all) > 0);
    kill(child, SIGSTOP);
    usleep(2'000);
    kill(child, SIGCONT);
  }
  close(beats[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_SUITE_END();

}  // namespace
