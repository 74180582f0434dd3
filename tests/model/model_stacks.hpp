// Provides stacks that no thread may touch once their owner has left them.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/model/model.hpp"

namespace weft::model {

// A waiter, its Claim and its Timer are on the stack of the waiting caller, and production source
// does not mark the end of their lifetimes. So a call that may wait runs on a separate stack, which
// becomes inaccessible when the call returns. A thread that touches the waiter later fails at once.
class OwnStacks {
 public:
  static OwnStacks& get() {
    static OwnStacks stacks;
    return stacks;
  }

  // Call it at the start of each interleaving, because the previous one may have failed halfway.
  void reset() {
    if (used_ == 0) return;
    (void)::mprotect(begin_, used_ * kSize, PROT_READ | PROT_WRITE);
    used_ = 0;
  }

  template <class Callable>
  void call(Callable&& callable) {
    expect(used_ < kCount, "the model is out of stacks");
    char* stack = begin_ + used_++ * kSize;
    ucontext_t here;
    ucontext_t there;
    (void)::getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = kSize;
    there.uc_link = &here;
    // The trampoline reads it at once: no other thread of the model runs in between.
    pending_ = &callable;
    ::makecontext(&there, &trampoline<std::remove_reference_t<Callable>>, 0);
    (void)::swapcontext(&here, &there);
    (void)::mprotect(stack, kSize, PROT_NONE);
  }

 private:
  static constexpr std::size_t kSize = 64 * 1024;
  static constexpr std::size_t kCount = 64;

  OwnStacks() {
    void* mapping = ::mmap(nullptr, kSize * kCount, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) std::abort();
    begin_ = static_cast<char*>(mapping);
    struct sigaction action {};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;  // The handler leaves by a jump.
    (void)::sigaction(SIGSEGV, &action, nullptr);
  }

  template <class Callable>
  static void trampoline() {
    (*static_cast<Callable*>(pending_))();
  }

  static void on_fault(int, siginfo_t* info, void*) {
    const OwnStacks& stacks = get();
    const auto* address = static_cast<const char*>(info->si_addr);
    const bool is_ours = address >= stacks.begin_ && address < stacks.begin_ + stacks.used_ * kSize;
    if (!rl::is_ctx()) std::_Exit(139);
    rl::ctx().fail_test(is_ours ? "a stack was touched after its owner had left it" : "bad address",
                        rl::test_result_access_to_freed_memory, info_of(Where::current()));
  }

  inline static void* pending_ = nullptr;
  char* begin_ = nullptr;
  std::size_t used_ = 0;
};

template <class Callable>
void call_on_own_stack(Callable&& callable) {
  OwnStacks::get().call(callable);
}

}  // namespace weft::model
