#include "base/parker.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "base/shake.hpp"

namespace weft::base {

using detail::acq_rel;
using detail::acquire;
using detail::relaxed;

void futex_wait(detail::Atomic<std::uint32_t>& word, std::uint32_t expected,
                Deadline deadline) noexcept {
  if (shake::chance(shake::Point::rouse)) return;
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(deadline.nanoseconds() / 1'000'000'000);
  limit.tv_nsec = static_cast<long>(deadline.nanoseconds() % 1'000'000'000);
  const int saved = errno;
  // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, so repeated waits do not drift.
  (void)syscall(SYS_futex, word.futex_address(), FUTEX_WAIT_BITSET_PRIVATE, expected,
                deadline.is_never() ? nullptr : &limit, nullptr, FUTEX_BITSET_MATCH_ANY);
  errno = saved;
}

namespace {

void futex_wake(detail::Atomic<std::uint32_t>& word, int count) noexcept {
  const int saved = errno;
  (void)syscall(SYS_futex, word.futex_address(), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
  errno = saved;
}

}  // namespace

void futex_wake_one(detail::Atomic<std::uint32_t>& word) noexcept { futex_wake(word, 1); }
void futex_wake_all(detail::Atomic<std::uint32_t>& word) noexcept {
  futex_wake(word, std::numeric_limits<int>::max());
}

bool Parker::announce(std::uint32_t where) noexcept {
  std::uint32_t expected = kEmpty;
  // Relaxed: the announcement publishes nothing. If it fails, the exchange of [token] takes the
  // token.
  return state_.compare_exchange_strong(expected, where, relaxed, relaxed);
}

bool Parker::park_until(Deadline deadline) noexcept {
  for (;;) {
    if (announce(kSleeping)) futex_wait(state_, kSleeping, deadline);
    if (state_.exchange(kEmpty, acquire) == kToken) return true;  // [token]
    if (deadline.passed()) return false;
  }
}

bool Parker::begin_elsewhere() noexcept {
  if (announce(kElsewhere)) return true;
  (void)end_elsewhere();
  return false;
}

bool Parker::end_elsewhere() noexcept {
  return state_.exchange(kEmpty, acquire) == kToken;  // [token]
}

bool Parker::unpark() noexcept {
  shake::delay();
  const std::uint32_t before = state_.exchange(kToken, acq_rel);  // [token]
  if (before == kSleeping) futex_wake_one(state_);
  return before == kElsewhere;
}

}  // namespace weft::base
