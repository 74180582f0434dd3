#include "libs/posix/carried_locks.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <weft/detail/spin_lock.hpp>
#include <weft/this_fiber.hpp>

#include "libs/posix/blocked_calls.hpp"
#include "libs/posix/fiber_state.hpp"
#include "libs/posix/locks.hpp"
#include "libs/posix/shards.hpp"

namespace weft::posix {

constinit detail::Atomic<bool> carrying::has_begun{false};

namespace {

using Node = CarriedLocks::Node;

// A fiber that waits for a lock. Guarded by its shard's lock. Not annotated, because no member
// leads to it.
struct LockWaiter : detail::Waiter {
  explicit LockWaiter(const void* where) noexcept : lock(where) {}
  const void* const lock;
  LockWaiter* next_chosen = nullptr;
  bool is_chosen = false;  // A release has reserved the lock for the fiber.
};

// The place where a chosen fiber waits again if another caller took the lock first.
struct Front {
  detail::WaitList& list;
  void push_back(detail::Waiter& waiter) noexcept { list.push_front(waiter); }
  void erase_if_linked(detail::Waiter& waiter) noexcept { list.erase_if_linked(waiter); }
};

// The fiber that holds a lock, or for which a lock is reserved. `unknown`: a thread or a running
// fiber may hold it.
enum class Holder : std::uint8_t { unknown, fiber_of_this_thread, fiber_of_another, reserved };

// `users` counts the carried locks and the waiters of a shard. Relaxed: a fiber waits only after it
// has seen the lock listed. The holder counts the lock before it releases it, so a later holder
// sees the count.
struct Shard {
  detail::SpinLock lock;
  Node* carried WEFT_GUARDED_BY(lock) = nullptr;
  detail::WaitList waiting WEFT_GUARDED_BY(lock);
  LockWaiter* chosen WEFT_GUARDED_BY(lock) = nullptr;
  detail::Atomic<std::uint32_t> users{0};

  [[nodiscard]] bool is_unused() const noexcept { return users.load(detail::relaxed) == 0; }

  [[nodiscard]] Holder holder_of(const void* address, const LockWaiter* but) const noexcept
      WEFT_REQUIRES(lock) {
    const void* const thread = this_thread();
    Holder found = Holder::unknown;
    for (const Node* node = carried; node != nullptr; node = node->next) {
      if (node->lock != address) continue;
      if (node->thread == thread) return Holder::fiber_of_this_thread;
      found = Holder::fiber_of_another;
    }
    if (found != Holder::unknown) return found;
    for (const LockWaiter* one = chosen; one != nullptr; one = one->next_chosen) {
      if (one->lock == address && one != but) return Holder::reserved;
    }
    return Holder::unknown;
  }
  void unchoose(LockWaiter& waiter) noexcept WEFT_REQUIRES(lock) {
    LockWaiter** place = &chosen;
    while (*place != &waiter) place = &(*place)->next_chosen;
    *place = waiter.next_chosen;
    waiter.is_chosen = false;
  }
  // Ends the wait of the first waiter for the lock, and returns the waiter; null if there is none.
  [[nodiscard]] LockWaiter* claim_first(const void* address) noexcept WEFT_REQUIRES(lock) {
    for (detail::Waiter* one = waiting.front(); one != nullptr;) {
      auto* waiter = static_cast<LockWaiter*>(one);
      one = one->next;
      if (waiter->lock != address) continue;
      waiting.erase(*waiter);
      if (detail::WaitList::try_claim(*waiter)) return waiter;
    }
    return nullptr;
  }
  // Reserves the lock for its first waiter, unless it is reserved. The caller wakes the result.
  [[nodiscard]] detail::Waker choose(const void* address) noexcept WEFT_REQUIRES(lock) {
    for (const LockWaiter* one = chosen; one != nullptr; one = one->next_chosen) {
      if (one->lock == address) return {};
    }
    LockWaiter* first = claim_first(address);
    if (first == nullptr) return {};
    first->is_chosen = true;
    first->next_chosen = chosen;
    chosen = first;
    return first->waker;
  }
};
constinit Shards<Shard> shards;

[[noreturn]] void refuse_to_hang() noexcept {
  // This uses the raw system call, because the C library's write() may be this library's.
  constexpr std::string_view kText =
      "weft-posix: a parked fiber of this worker holds a lock, which is awaited where no fiber can "
      "park; do not wait for it in a NoSwitch scope or in pthread_once()\n";
  (void)::syscall(SYS_write, STDERR_FILENO, kText.data(), kText.size());
  std::abort();
}

// A call that waits for one lock.
class LockWait {
 public:
  explicit LockWait(const void* lock) noexcept : shard_(shards.of(lock)), self_(lock) {}
  // Passes on a reservation that the caller has not used.
  ~LockWait() {
    if (!has_waited_) return;
    detail::Waker next;
    {
      const detail::SpinGuard guard(shard_.lock);
      if (self_.is_chosen) {
        shard_.unchoose(self_);
        if (!has_lock_) next = shard_.choose(self_.lock);
      }
    }
    shard_.users.fetch_sub(1, detail::relaxed);
    if (next) detail::wake(next);
  }
  LockWait(const LockWait&) = delete;
  LockWait& operator=(const LockWait&) = delete;

  [[nodiscard]] Holder holder() noexcept {
    const detail::SpinGuard guard(shard_.lock);
    return shard_.holder_of(self_.lock, &self_);
  }
  // Parks if the lock is still carried or reserved. Returns false at the limit.
  [[nodiscard]] bool park(detail::WaitReason reason, Deadline limit) noexcept {
    FiberState* state = current_scope();
    std::optional<OwnCalls> own;
    if (state != nullptr) own.emplace(*state);
    const this_fiber::Pin pin;  // The C library takes the thread for the owner of the locks.
    CarriedLocks mine;
    mine.put_down(nullptr);
    const bool is_notified = wait(reason, limit);
    mine.pick_up();
    return is_notified;
  }
  void took_lock() noexcept { has_lock_ = true; }

 private:
  // Not analyzed: the wait releases the lock.
  bool wait(detail::WaitReason reason, Deadline limit) noexcept WEFT_NOT_ANALYZED {
    shard_.lock.lock();
    if (shard_.holder_of(self_.lock, &self_) == Holder::unknown) {
      shard_.lock.unlock();
      return true;
    }
    if (!std::exchange(has_waited_, true)) shard_.users.fetch_add(1, detail::relaxed);
    const bool was_chosen = self_.is_chosen;
    if (was_chosen) shard_.unchoose(self_);
    static_cast<detail::Waiter&>(self_) = {};
    const Until until(limit);
    Front front{shard_.waiting};
    const auto winner =
        was_chosen ? detail::wait_in_until(front, shard_.lock, self_, reason, until)
                   : detail::wait_in_until(shard_.waiting, shard_.lock, self_, reason, until);
    return winner == detail::Claim::kNotifier;
  }

  Shard& shard_;
  LockWaiter self_;
  bool has_waited_ = false;
  bool has_lock_ = false;
};

constexpr std::int64_t kFirstSlice = 1'000'000;  // Nanoseconds.
constexpr std::int64_t kLastSlice = 16'000'000;
constexpr std::int64_t kLookForReservation = 100'000'000;

// Waits in the C library, at most for `slice`.
int wait_in_place(void* lock, const LockKind& kind, Deadline limit, std::int64_t slice) {
  const Deadline end = std::min(limit, Deadline::after(std::chrono::nanoseconds(slice)));
  const timespec time{end.nanoseconds() / 1'000'000'000, end.nanoseconds() % 1'000'000'000};
  const int result = kind.wait_until(lock, &time);
  // Some kinds of mutexes do not take the monotonic clock.
  return result == EINVAL && limit.is_never() ? kind.wait(lock) : result;
}

// A fiber waits in the C library for a lock whose holder is not parked. It checks from time to time
// whether the holder has parked since. Otherwise two workers could each block for a lock that a
// ready fiber of the other holds.
int take_slowly(void* lock, const LockKind& kind, Deadline limit, const void* from) {
  const bool is_fiber = this_fiber::is_fiber();
  const bool may_park = is_fiber && this_fiber::may_switch() && locks_that_stay() == 0;
  const bool is_in_scope = current_scope() != nullptr;
  std::optional<BlockedCall> blocked;
  LockWait wait(lock);
  bool may_pass = false;
  for (std::int64_t slice = kFirstSlice;; slice = std::min(2 * slice, kLastSlice)) {
    const Holder holder = wait.holder();
    int result = EBUSY;
    const bool is_reserved = holder == Holder::reserved;
    if (holder == Holder::unknown || !kind.is_exclusive || (may_pass && is_reserved))
      result = kind.attempt(lock);
    if (result == EBUSY && holder != Holder::unknown && may_park) {
      blocked.reset();
      // The chosen fiber cannot run while its worker is blocked: the reservation then expires. A
      // parked waiter checks for a reservation from time to time.
      const std::chrono::nanoseconds longest(is_reserved ? kLastSlice : kLookForReservation);
      const bool has_looked = !wait.park(kind.reason, std::min(limit, Deadline::after(longest)));
      may_pass = has_looked && is_reserved;
      if (has_looked && limit.passed()) return ETIMEDOUT;
      slice = kFirstSlice / 2;
      continue;
    }
    if (result == EBUSY && holder == Holder::fiber_of_this_thread) refuse_to_hang();
    if (result == EBUSY) {
      if (is_in_scope && slice > kFirstSlice && !blocked)
        blocked.emplace(Call{kind.call, from}, "another caller has the lock");
      result =
          wait_in_place(lock, kind, limit, is_fiber ? slice : Deadline::never().nanoseconds() / 4);
    }
    if (result == ETIMEDOUT && !limit.passed()) continue;
    if (result == 0 || result == EOWNERDEAD) wait.took_lock();
    return result;
  }
}

}  // namespace

void begin_carrying() noexcept { carrying::has_begun.store(true, detail::relaxed); }

void CarriedLocks::put_down(const void* released) noexcept {
  while (const void* lock = take_known_lock(released)) {
    Node& node = nodes_[count_++];
    Shard& shard = shards.of(lock);
    shard.users.fetch_add(1, detail::relaxed);
    const detail::SpinGuard guard(shard.lock);
    node = {lock, this_thread(), shard.carried};
    shard.carried = &node;
  }
}

void CarriedLocks::pick_up() noexcept {
  while (count_ > 0) {
    Node& node = nodes_[--count_];
    Shard& shard = shards.of(node.lock);
    {
      const detail::SpinGuard guard(shard.lock);
      Node** place = &shard.carried;
      while (*place != nullptr && *place != &node) place = &(*place)->next;
      if (*place != nullptr) *place = node.next;
    }
    shard.users.fetch_sub(1, detail::relaxed);
    give_known_lock(node.lock);
  }
}

int take_lock(void* lock, const LockKind& kind, Deadline limit, const void* from) noexcept {
  if (shards.of(lock).is_unused()) {
    const int result = kind.attempt(lock);
    if (result != EBUSY) return result;
  }
  const int error = errno;
  const int result = take_slowly(lock, kind, limit, from);
  errno = error;
  return result;
}

bool is_carried(const void* lock) noexcept {
  Shard& shard = shards.of(lock);
  if (shard.is_unused()) return false;
  const detail::SpinGuard guard(shard.lock);
  const Holder holder = shard.holder_of(lock, nullptr);
  return holder == Holder::fiber_of_this_thread || holder == Holder::fiber_of_another;
}

void lock_was_released(const void* lock, bool is_free_and_exclusive) noexcept {
  Shard& shard = shards.of(lock);
  if (shard.is_unused()) return;
  const int error = errno;
  if (is_free_and_exclusive) {
    detail::Waker next;
    {
      const detail::SpinGuard guard(shard.lock);
      next = shard.choose(lock);
    }
    if (next) detail::wake(next);
  } else {
    for (;;) {
      detail::Waker next;
      {
        const detail::SpinGuard guard(shard.lock);
        if (LockWaiter* first = shard.claim_first(lock)) next = first->waker;
      }
      if (!next) break;
      detail::wake(next);
    }
  }
  errno = error;
}

void forget_carried_locks() noexcept { shards.forget(); }

}  // namespace weft::posix
