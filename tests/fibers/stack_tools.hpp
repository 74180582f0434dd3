// Provides stacks without a scheduler, for tests that run a function on such a stack.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "base/magazine.hpp"
#include "fibers/stack_space.hpp"
#include "fibers/switch.hpp"

namespace weft::test {

// A thread's first stack and its state. The tests look it up for every use, because a body may
// continue on another thread.
struct ThreadStack {
  ThreadStack() { stack.sanitizer.adopt_thread(); }
  fibers::Stack stack;
  fibers::ThreadState state = fibers::ThreadState::of_this_thread();
};
[[gnu::noinline]] inline ThreadStack& this_thread() {
  thread_local ThreadStack mine;
  asm volatile("" : : : "memory");
  return mine;
}

// Runs a body on a separate stack, one resume() at a time.
class Coroutine {
 public:
  explicit Coroutine(fibers::Stack* its_stack) : stack(its_stack) {}

  // Runs the body until it suspends or ends. One thread at a time may call it.
  void resume() {
    ThreadStack& mine = this_thread();
    caller_ = &mine.stack;
    starting() = this;
    fibers::switch_to(mine.state, mine.stack, *stack, &nothing, nullptr);
  }
  // The body calls suspend() to return to the thread that called resume().
  void suspend() { fibers::switch_to(this_thread().state, *stack, *caller_, &nothing, nullptr); }
  // The entry function of the stacks, for StackSpace.
  static void entry(fibers::Arrival arrival) {
    Coroutine& self = *starting();
    fibers::arrive(arrival, *self.stack);
    for (;;) {
      self.body(self);
      self.finished = true;
      self.suspend();
    }
  }

  fibers::Stack* const stack;
  std::function<void(Coroutine&)> body;
  bool finished = false;

 private:
  static void nothing(void*) noexcept {}
  [[gnu::noinline]] static Coroutine*& starting() {
    static thread_local Coroutine* started = nullptr;
    asm volatile("" : : : "memory");
    return started;
  }

  fibers::Stack* caller_ = nullptr;
};

// Takes `count` stacks of the smallest size, where `count` is a multiple of 32. Returns them
// linked, in no order.
inline fibers::Stack* take_stacks(fibers::StackSpace& space, std::size_t count) {
  fibers::Stack* all = nullptr;
  for (std::size_t taken = 0; taken < count; taken += 32) {
    fibers::Stack* chain = space.take(0, 32);
    REQUIRE(base::chain_length(chain) == 32);
    while (chain != nullptr) {
      fibers::Stack* const next = std::exchange(chain->next, all);
      all = std::exchange(chain, next);
    }
  }
  return all;
}

// Returns the signal that ends a child process that touches the byte, or 0 if none does.
inline int signal_of_touching(char* byte) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    *static_cast<volatile char*>(byte) = 1;
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace weft::test
