// Replaces the kernel's futex, for production source that calls it. Include it before that source,
// between #define syscall weft::model::futex_syscall and #undef syscall.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/model/model.hpp"

namespace weft::model {

// How a wait in the kernel may end without a wake: early for no reason, or at its deadline.
enum class WaitEnd { by_wake, early, early_or_late };

inline void wait_in_kernel(Atomic<std::uint32_t>& word, std::uint32_t expected, WaitEnd end,
                           Where where = Where::current()) {
  rl::context& context = rl::ctx();
  context.sched();
  // The kernel compares and sleeps in one step, and sees the newest value.
  if (word.newest() != expected) return;
  const rl::unpark_reason reason = word.sleepers().park_current(
      context, end == WaitEnd::early_or_late, end != WaitEnd::by_wake, false, info_of(where));
  if (reason == rl::unpark_reason_timeout) is_late = true;
}

inline void wake_in_kernel(Atomic<std::uint32_t>& word, int count, Where where = Where::current()) {
  rl::context& context = rl::ctx();
  context.sched();
  while (count-- > 0 && word.sleepers().unpark_one(context, info_of(where))) {
  }
}

inline long futex_syscall(long number, std::uint32_t* address, int operation, std::uint32_t value,
                          const timespec* limit, void* /*second*/, std::uint32_t /*mask*/) {
  expect(number == SYS_futex, "the model knows no system call but futex");
  auto& word = *reinterpret_cast<Atomic<std::uint32_t>*>(address);
  if (operation == FUTEX_WAIT_BITSET_PRIVATE) {
    wait_in_kernel(word, value, limit == nullptr ? WaitEnd::early : WaitEnd::early_or_late);
  } else {
    expect(operation == FUTEX_WAKE_PRIVATE, "the model knows two futex operations");
    wake_in_kernel(word, static_cast<int>(value));
  }
  return 0;
}

// Imitates another way to sleep: epoll_wait with an eventfd, which keeps an interrupt for the next
// wait.
class Elsewhere {
 public:
  void wait(bool timed) {
    if (signal_.exchange(0, detail::acquire) != 0) return;
    wait_in_kernel(signal_, 0, timed ? WaitEnd::early_or_late : WaitEnd::early);
  }
  void interrupt() {
    signal_.store(1, detail::release);
    wake_in_kernel(signal_, 1);
  }

 private:
  Atomic<std::uint32_t> signal_{0};
};

}  // namespace weft::model
