// Condition variables. A table, keyed by the address of the condition variable, lists the fibers
// that wait. A signal first wakes threads as usual, and then looks up the table.
#include <pthread.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <new>
#include <weft/condition_variable.hpp>
#include <weft/context.hpp>
#include <weft/detail/first_use.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/this_fiber.hpp>

#include "libs/posix/carried_locks.hpp"
#include "libs/posix/hooks.hpp"
#include "libs/posix/locks.hpp"
#include "libs/posix/shards.hpp"
#include "libs/posix/waiting.hpp"

namespace weft::posix {

namespace {

// glibc before 2.3.2 had condition variables with another layout.
constexpr const char* kVersion = "GLIBC_2.3.2";
constinit Real<decltype(::pthread_cond_wait)> real_wait("pthread_cond_wait", kVersion);
constinit Real<decltype(::pthread_cond_timedwait)> real_timedwait("pthread_cond_timedwait",
                                                                  kVersion);
constinit Real<decltype(::pthread_cond_clockwait)> real_clockwait("pthread_cond_clockwait");
constinit Real<decltype(::pthread_cond_signal)> real_signal("pthread_cond_signal", kVersion);
constinit Real<decltype(::pthread_cond_broadcast)> real_broadcast("pthread_cond_broadcast",
                                                                  kVersion);

// The object on which fibers park while they wait for one pthread condition variable.
struct Entry {
  explicit Entry(const void* where) noexcept : address(where) {}
  const void* const address;
  ConditionVariable condition;
  // Guarded by the shard's lock. Not annotated, because no member leads to that lock.
  Entry* next = nullptr;
  // Counts waiting fibers and running signals; the last of them removes the entry.
  std::size_t users = 0;
};

// `waiting` counts the fibers of a shard. Relaxed: a fiber counts before it releases its mutex, so
// a caller that locks the mutex later sees the count. A signal by any other caller may precede the
// wait, as it may on threads.
struct Shard {
  detail::SpinLock lock;
  Entry* first WEFT_GUARDED_BY(lock) = nullptr;
  detail::Atomic<std::uint32_t> waiting{0};

  [[nodiscard]] Entry** find(const void* address) noexcept WEFT_REQUIRES(lock) {
    Entry** place = &first;
    while (*place != nullptr && (*place)->address != address) place = &(*place)->next;
    return place;
  }
};
constinit Shards<Shard> shards;

// Keeps the entry of an address for the lifetime of this object.
class Use {
 public:
  // Uses the existing entry, or none.
  explicit Use(const void* address) noexcept : shard_(shards.of(address)) {
    const detail::SpinGuard guard(shard_.lock);
    entry_ = *shard_.find(address);
    if (entry_ != nullptr) ++entry_->users;
  }
  // Adds `fresh` if the address has no entry.
  Use(const void* address, Entry* fresh) noexcept : shard_(shards.of(address)) {
    {
      const detail::SpinGuard guard(shard_.lock);
      entry_ = *shard_.find(address);
      if (entry_ == nullptr && fresh != nullptr) {
        entry_ = std::exchange(fresh, nullptr);
        entry_->next = std::exchange(shard_.first, entry_);
      }
      if (entry_ != nullptr) ++entry_->users;
    }
    delete fresh;
  }
  ~Use() {
    if (entry_ == nullptr) return;
    {
      const detail::SpinGuard guard(shard_.lock);
      if (--entry_->users > 0) return;
      *shard_.find(entry_->address) = entry_->next;
    }
    delete entry_;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  [[nodiscard]] Shard& shard() noexcept { return shard_; }
  [[nodiscard]] Entry* entry() noexcept { return entry_; }

 private:
  Shard& shard_;
  Entry* entry_ = nullptr;
};

using Notify = void (ConditionVariable::*)() noexcept;

// Wakes fibers. The condition variable itself may have been destroyed by now.
void wake_fibers(const void* address, Notify notify) noexcept {
  if (shards.of(address).waiting.load(detail::relaxed) == 0) [[likely]]
    return;
  const int error = errno;
  if (Use use(address); use.entry() != nullptr) (use.entry()->condition.*notify)();
  errno = error;
}

struct NotUnlocked {
  int error;
};

// Adapts the mutex of a wait to the lock that ConditionVariable requires.
struct UserMutex {
  pthread_mutex_t* mutex;
  int error = 0;  // The result of lock().

  void unlock() {
    if (const int failed = ::pthread_mutex_unlock(mutex)) throw NotUnlocked{failed};
  }
  // The holder of the mutex may be a ready fiber of this worker.
  void lock() noexcept {
    for (int attempts = 0; attempts < 8; ++attempts) {
      error = ::pthread_mutex_trylock(mutex);
      if (error != EBUSY) return;
      this_fiber::yield();
    }
    error = ::pthread_mutex_lock(mutex);
  }
};

// A context that ends during the wait wakes the fiber once, without a signal. A context that has
// already ended is ignored: otherwise a caller that waits again in a loop would never park.
int wait_parked(FiberState& state, ConditionVariable& condition, pthread_mutex_t* mutex,
                Deadline limit) noexcept {
  const int error_before = errno;
  const OwnCalls own(state, mutex);
  const Until context = this_fiber::until();
  const Until until = context.is_over() ? Until(limit) : context.but_before(limit);
  UserMutex lock{mutex};
  int result = 0;
  try {
    const std::cv_status status = condition.wait_until(lock, until);
    if (status == std::cv_status::timeout && limit.passed()) result = ETIMEDOUT;
    if (lock.error != 0) result = lock.error;
  } catch (const NotUnlocked& failed) {
    result = failed.error;
  }
  errno = error_before;
  return result;
}

constexpr unsigned kIsShared = 1;
constexpr unsigned kIsMonotonic = 2;

unsigned attributes_of([[maybe_unused]] const pthread_cond_t& condition) noexcept {
#ifdef __GLIBC__
  return condition.__data.__wrefs & (kIsShared | kIsMonotonic);
#else
  return 0;  // Unknown.
#endif
}

// Returns whether attributes_of() returns the right attributes. The C library has no public call
// for it.
bool are_attributes_known() noexcept {
  pthread_condattr_t attributes{};
  pthread_cond_t plain{};
  pthread_cond_t other{};
  (void)::pthread_condattr_init(&attributes);
  (void)::pthread_cond_init(&plain, &attributes);
  (void)::pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  (void)::pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  (void)::pthread_cond_init(&other, &attributes);
  return attributes_of(plain) == 0 && attributes_of(other) == (kIsShared | kIsMonotonic);
}

const char* reason_not_to_park(const FiberState& state, const pthread_cond_t& condition,
                               const pthread_mutex_t* mutex) noexcept {
  if (locks_held() > 1 && (state.carry_scopes == 0 || locks_that_stay(mutex) > 0))
    return "another pthread lock is held";
  if (!this_fiber::may_switch()) return "a NoSwitch scope";
  if (!detail::computed_once<&are_attributes_known>()) return "an unknown C library";
  return (attributes_of(condition) & kIsShared) != 0 ? "shared by processes" : nullptr;
}

template <class Plain>
int wait_in_scope(FiberState& state, const Call& call, pthread_cond_t* condition,
                  pthread_mutex_t* mutex, Deadline limit, Plain plain) {
  const char* reason = reason_not_to_park(state, *condition, mutex);
  if (reason == nullptr) {
    Use use(condition, new (std::nothrow) Entry(condition));
    if (use.entry() != nullptr) {
      use.shard().waiting.fetch_add(1, detail::relaxed);
      const int result = wait_parked(state, use.entry()->condition, mutex, limit);
      use.shard().waiting.fetch_sub(1, detail::relaxed);
      return result;
    }
    reason = "no memory";
  }
  const BlockedCall blocked(call, reason);
  return plain();
}

// The C library releases the mutex by itself. Fibers that wait for the mutex wait in the C library
// from now on, and so notice the release.
template <class Wait, class... Arguments>
int wait_in_place(Wait& wait, pthread_cond_t* condition, pthread_mutex_t* mutex,
                  Arguments... arguments) {
  if (carrying_has_begun()) lock_was_released(mutex, false);
  return wait(condition, mutex, arguments...);
}

}  // namespace

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

WEFT_POSIX_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  FiberState* state = current_scope();
  if (state == nullptr) return wait_in_place(real_wait, condition, mutex);
  return wait_in_scope(*state, {"pthread_cond_wait", __builtin_return_address(0)}, condition, mutex,
                       weft::Deadline::never(),
                       [=] { return wait_in_place(real_wait, condition, mutex); });
}

WEFT_POSIX_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                             const timespec* time) {
  FiberState* state = current_scope();
  if (state == nullptr || !is_valid(*time))
    return wait_in_place(real_timedwait, condition, mutex, time);
  const bool is_monotonic = (attributes_of(*condition) & kIsMonotonic) != 0;
  return wait_in_scope(*state, {"pthread_cond_timedwait", __builtin_return_address(0)}, condition,
                       mutex, limit_at(is_monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, *time),
                       [=] { return wait_in_place(real_timedwait, condition, mutex, time); });
}

WEFT_POSIX_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                             clockid_t clock, const timespec* time) {
  FiberState* state =
      clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME ? current_scope() : nullptr;
  if (state == nullptr || !is_valid(*time))
    return wait_in_place(real_clockwait, condition, mutex, clock, time);
  return wait_in_scope(*state, {"pthread_cond_clockwait", __builtin_return_address(0)}, condition,
                       mutex, limit_at(clock, *time), [=] {
                         return wait_in_place(real_clockwait, condition, mutex, clock, time);
                       });
}

WEFT_POSIX_EXPORT int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  const int result = real_signal(condition);
  wake_fibers(condition, &weft::ConditionVariable::notify_one);
  return result;
}

WEFT_POSIX_EXPORT int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  const int result = real_broadcast(condition);
  wake_fibers(condition, &weft::ConditionVariable::notify_all);
  return result;
}

}  // extern "C"

WEFT_POSIX_HOOK(pthread_cond_wait);
WEFT_POSIX_HOOK(pthread_cond_timedwait);
WEFT_POSIX_HOOK(pthread_cond_clockwait);
WEFT_POSIX_HOOK(pthread_cond_signal);
WEFT_POSIX_HOOK(pthread_cond_broadcast);

namespace weft::posix {

void forget_conditions() noexcept { shards.forget(); }

std::span<const Hook> condition_hooks() noexcept {
  static const std::array hooks{
      WEFT_POSIX_ENTRY(pthread_cond_wait), WEFT_POSIX_ENTRY(pthread_cond_timedwait),
      WEFT_POSIX_ENTRY(pthread_cond_clockwait), WEFT_POSIX_ENTRY(pthread_cond_signal),
      WEFT_POSIX_ENTRY(pthread_cond_broadcast)};
  return hooks;
}

}  // namespace weft::posix
