// Fibers of a warm worker ask the kernel for nothing.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <iterator>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "base/shake.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

constexpr int kNotPossibleHere = 77;

// From now on any system call of the calling thread but the one that ends the process kills it.
// The clock is let through: where the kernel does not lend its own to programs, it is one.
bool refuse_system_calls() {
  const auto number = static_cast<unsigned>(offsetof(seccomp_data, nr));
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program{std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// In a child, which has no way back: by a fiber of the only worker, which runs `warm_up` first. The
// child's exit status, or its signal, negative.
template <class WarmUp, class Body>
int status_of_child(WarmUp warm_up, Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30 * weft::test::kSlowdown);
    const weft::base::shake::Still still;
    weft::run({.workers = 1, .monitor = false}, [&] {
      warm_up();
      if (!refuse_system_calls()) _exit(kNotPossibleHere);
      body();
      _exit(0);
    });
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Fibers that end at once, and such as park: up to a thousand at a time have a stack.
void spawn_and_wait() {
  for (int round = 0; round < 20; ++round) {
    weft::WaitGroup group;
    weft::Channel<int> gate;
    for (int i = 0; i < 1'000; ++i) group.go([] {});
    for (int i = 0; i < 1'000; ++i) group.go([&] { (void)gate.receive(); });
    weft::this_fiber::yield();
    gate.close();
    group.wait();
  }
}

void check_status(int status, int expected) {
  if (status == kNotPossibleHere) {
    MESSAGE("skipped: system calls cannot be refused here");
  } else {
    CHECK(status == expected);
  }
}

TEST_SUITE_BEGIN("cost/system_calls");

TEST_CASE("on a warm worker a fiber is spawned, parks, is woken and ends without a system call") {
  check_status(status_of_child(spawn_and_wait, spawn_and_wait), 0);
}

TEST_CASE("a system call would be noticed: new stacks take some") {
  check_status(status_of_child([] {}, spawn_and_wait), -SIGSYS);
}

TEST_SUITE_END();

}  // namespace
