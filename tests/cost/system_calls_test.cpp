// Tests that fibers of a warm worker make no system calls.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <iterator>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "base/shake.hpp"
#include "tests/support/child.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using weft::test::kNotPossibleHere;

// From now on, any system call of the calling thread, except the one that ends the process, kills
// it. Reads of the clock are allowed, because some kernels offer the clock only as a system call.
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

// In a child process, a fiber of the only worker runs `warm_up`, then `body`, which may make no
// system call.
template <class WarmUp, class Body>
void check_status(WarmUp warm_up, Body body, int expected) {
  const int status = weft::test::status_of_child([&] {
    const weft::base::shake::Still still;
    weft::run({.workers = 1, .monitor = false}, [&] {
      warm_up();
      if (!refuse_system_calls()) _exit(kNotPossibleHere);
      body();
      _exit(0);
    });
    return 1;
  });
  if (status == kNotPossibleHere) {
    weft::test::skip("system calls cannot be refused here");
  } else {
    CHECK(status == expected);
  }
}

// Spawns fibers that end at once, and fibers that park: up to a thousand have a stack at a time.
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

TEST_SUITE_BEGIN("cost/system_calls");

TEST_CASE(
    "a worker with cached memory spawns, parks, wakes and ends a fiber without a system call") {
  check_status(spawn_and_wait, spawn_and_wait, 0);
}

TEST_CASE("a process is killed by this test's filter when it makes a system call for a new stack") {
  check_status([] {}, spawn_and_wait, -SIGSYS);
}

TEST_SUITE_END();

}  // namespace
