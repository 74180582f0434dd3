// Counts the pthread locks that each thread holds, and notes them once fibers may carry locks. In
// builds with debug_locks, which intercepts the same functions and counts locks, this file counts
// initializations only, and no fiber carries a lock.
#include "libs/posix/locks.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "libs/posix/carried_locks.hpp"
#include "libs/posix/hooks.hpp"
#include "libs/posix/waiting.hpp"
#ifdef WEFT_DEBUG_LOCKS
#include "base/debug_locks.hpp"
#endif

namespace weft::posix {

namespace {

#ifndef WEFT_DEBUG_LOCKS
constinit Real<decltype(::pthread_mutex_lock)> real_lock("pthread_mutex_lock");
constinit Real<decltype(::pthread_mutex_trylock)> real_trylock("pthread_mutex_trylock");
constinit Real<decltype(::pthread_mutex_timedlock)> real_timedlock("pthread_mutex_timedlock");
constinit Real<decltype(::pthread_mutex_clocklock)> real_clocklock("pthread_mutex_clocklock");
constinit Real<decltype(::pthread_mutex_unlock)> real_unlock("pthread_mutex_unlock");
constinit Real<decltype(::pthread_rwlock_rdlock)> real_rdlock("pthread_rwlock_rdlock");
constinit Real<decltype(::pthread_rwlock_wrlock)> real_wrlock("pthread_rwlock_wrlock");
constinit Real<decltype(::pthread_rwlock_tryrdlock)> real_tryrdlock("pthread_rwlock_tryrdlock");
constinit Real<decltype(::pthread_rwlock_trywrlock)> real_trywrlock("pthread_rwlock_trywrlock");
constinit Real<decltype(::pthread_rwlock_timedrdlock)> real_timedrdlock(
    "pthread_rwlock_timedrdlock");
constinit Real<decltype(::pthread_rwlock_timedwrlock)> real_timedwrlock(
    "pthread_rwlock_timedwrlock");
constinit Real<decltype(::pthread_rwlock_clockrdlock)> real_clockrdlock(
    "pthread_rwlock_clockrdlock");
constinit Real<decltype(::pthread_rwlock_clockwrlock)> real_clockwrlock(
    "pthread_rwlock_clockwrlock");
constinit Real<decltype(::pthread_rwlock_unlock)> real_rwunlock("pthread_rwlock_unlock");
#endif
constinit Real<decltype(::pthread_once)> real_once("pthread_once");

// The list has `known` of the `held` locks, in the order in which the thread took them.
struct ThreadLocks {
  int held;
  unsigned known;
  std::array<const void*, kMostKnown> locks;
};
// With the model initial-exec, an access makes no call that may allocate.
__thread ThreadLocks locks_of_thread __attribute__((tls_model("initial-exec")));

// Not inlined, because a fiber outside of scopes moves between threads.
[[gnu::noinline]] ThreadLocks& here() noexcept {
  ThreadLocks* locks = &locks_of_thread;
  asm volatile("" : "+r"(locks));
  return *locks;
}

void add(ThreadLocks& thread, const void* lock) noexcept {
  ++thread.held;
  if (thread.known < thread.locks.size()) thread.locks[thread.known++] = lock;
}
void remove_known(ThreadLocks& thread, unsigned index) noexcept {
  const auto begin = thread.locks.begin();
  std::copy(begin + index + 1, begin + thread.known, begin + index);
  --thread.known;
  --thread.held;
}

#ifndef WEFT_DEBUG_LOCKS
int locked(const void* lock, int result) noexcept {
  if (result != 0 && result != EOWNERDEAD) return result;
  ThreadLocks& thread = here();
  if (carrying_has_begun()) {
    add(thread, lock);
  } else {
    ++thread.held;
  }
  return result;
}
int unlocked(const void* lock, int result) noexcept {
  if (result != 0) return result;
  ThreadLocks& thread = here();
  for (unsigned i = thread.known; i-- > 0;) {
    if (thread.locks[i] != lock) continue;
    remove_known(thread, i);
    return result;
  }
  // The count stays as it is if another thread locked the mutex, which POSIX forbids.
  if (thread.held > static_cast<int>(thread.known)) --thread.held;
  return result;
}

pthread_mutex_t* as_mutex(void* lock) noexcept { return static_cast<pthread_mutex_t*>(lock); }
pthread_rwlock_t* as_rwlock(void* lock) noexcept { return static_cast<pthread_rwlock_t*>(lock); }

constexpr LockKind kMutex{"pthread_mutex_lock",
                          [](void* lock) noexcept { return real_trylock(as_mutex(lock)); },
                          [](void* lock) { return real_lock(as_mutex(lock)); },
                          [](void* lock, const timespec* time) {
                            return real_clocklock(as_mutex(lock), CLOCK_MONOTONIC, time);
                          },
                          detail::WaitReason::mutex,
                          true};
constexpr LockKind kReading{"pthread_rwlock_rdlock",
                            [](void* lock) noexcept { return real_tryrdlock(as_rwlock(lock)); },
                            [](void* lock) { return real_rdlock(as_rwlock(lock)); },
                            [](void* lock, const timespec* time) {
                              return real_clockrdlock(as_rwlock(lock), CLOCK_MONOTONIC, time);
                            },
                            detail::WaitReason::shared_mutex_read,
                            false};
constexpr LockKind kWriting{"pthread_rwlock_wrlock",
                            [](void* lock) noexcept { return real_trywrlock(as_rwlock(lock)); },
                            [](void* lock) { return real_wrlock(as_rwlock(lock)); },
                            [](void* lock, const timespec* time) {
                              return real_clockwrlock(as_rwlock(lock), CLOCK_MONOTONIC, time);
                            },
                            detail::WaitReason::shared_mutex_write,
                            false};

// Returns true if the thread holds the lock: the C library then locks it again or refuses.
bool is_left_to_c_library(const void* lock) noexcept {
  return !carrying_has_begun() || holds_lock(lock);
}

template <class Plain>
int take(void* lock, const LockKind& kind, const void* from, Plain plain) noexcept {
  return locked(
      lock, is_left_to_c_library(lock) ? plain() : take_lock(lock, kind, Deadline::never(), from));
}

template <class Plain>
int take_until(void* lock, const LockKind& kind, clockid_t clock, const timespec& time,
               const void* from, Plain plain) noexcept {
  const bool is_known_clock = clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME;
  if (is_left_to_c_library(lock) || !is_known_clock) return locked(lock, plain());
  if (is_valid(time)) return locked(lock, take_lock(lock, kind, limit_at(clock, time), from));
  if (!is_carried(lock)) return locked(lock, plain());
  return time.tv_nsec < 0 || time.tv_nsec >= 1'000'000'000 ? EINVAL : ETIMEDOUT;
}

// The C library takes each fiber of a thread for the owner.
template <class Plain>
int release(const void* lock, bool is_exclusive, Plain plain) noexcept {
  if (!carrying_has_begun()) return unlocked(lock, plain());
  // A reader whose lock is not on the thread's list may share the lock with a fiber that carries
  // it.
  if (is_exclusive && !holds_lock(lock) && is_carried(lock)) return EPERM;
  const int result = unlocked(lock, plain());
  if (result == 0 && !holds_lock(lock))
    lock_was_released(lock, is_exclusive && locks_that_stay() == 0);
  return result;
}
#endif

}  // namespace

int locks_held() noexcept {
#ifdef WEFT_DEBUG_LOCKS
  return here().held + base::locks_held();
#else
  return here().held;
#endif
}

int locks_that_stay(const void* released) noexcept {
  const ThreadLocks& thread = here();
  const int stay = locks_held() - static_cast<int>(thread.known);
  if (released == nullptr) return stay;
  const auto times =
      std::count(thread.locks.begin(), thread.locks.begin() + thread.known, released);
  if (times > 1) return stay + 1;
  return times == 1 || stay == 0 ? stay : stay - 1;
}

bool holds_lock(const void* lock) noexcept {
  const ThreadLocks& thread = here();
  const auto end = thread.locks.begin() + thread.known;
  return std::find(thread.locks.begin(), end, lock) != end;
}

const void* take_known_lock(const void* released) noexcept {
  ThreadLocks& thread = here();
  for (unsigned i = thread.known; i-- > 0;) {
    const void* const lock = thread.locks[i];
    if (lock == released) continue;
    remove_known(thread, i);
    return lock;
  }
  return nullptr;
}

void give_known_lock(const void* lock) noexcept { add(here(), lock); }

void forget_held_locks() noexcept { here() = {}; }

const void* this_thread() noexcept { return &here(); }

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

#ifndef WEFT_DEBUG_LOCKS
WEFT_POSIX_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  return take(mutex, kMutex, __builtin_return_address(0), [=] { return real_lock(mutex); });
}
WEFT_POSIX_EXPORT int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  if (carrying_has_begun() && !holds_lock(mutex) && is_carried(mutex)) return EBUSY;
  return locked(mutex, real_trylock(mutex));
}
WEFT_POSIX_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* mutex,
                                              const timespec* limit) noexcept {
  return take_until(mutex, kMutex, CLOCK_REALTIME, *limit, __builtin_return_address(0),
                    [=] { return real_timedlock(mutex, limit); });
}
WEFT_POSIX_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                              const timespec* limit) noexcept {
  return take_until(mutex, kMutex, clock, *limit, __builtin_return_address(0),
                    [=] { return real_clocklock(mutex, clock, limit); });
}
WEFT_POSIX_EXPORT int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  return release(mutex, true, [=] { return real_unlock(mutex); });
}
WEFT_POSIX_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  return take(lock, kReading, __builtin_return_address(0), [=] { return real_rdlock(lock); });
}
WEFT_POSIX_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  return take(lock, kWriting, __builtin_return_address(0), [=] { return real_wrlock(lock); });
}
WEFT_POSIX_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  return locked(lock, real_tryrdlock(lock));
}
WEFT_POSIX_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  return locked(lock, real_trywrlock(lock));
}
WEFT_POSIX_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock,
                                                 const timespec* limit) noexcept {
  return take_until(lock, kReading, CLOCK_REALTIME, *limit, __builtin_return_address(0),
                    [=] { return real_timedrdlock(lock, limit); });
}
WEFT_POSIX_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock,
                                                 const timespec* limit) noexcept {
  return take_until(lock, kWriting, CLOCK_REALTIME, *limit, __builtin_return_address(0),
                    [=] { return real_timedwrlock(lock, limit); });
}
WEFT_POSIX_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock,
                                                 const timespec* limit) noexcept {
  return take_until(lock, kReading, clock, *limit, __builtin_return_address(0),
                    [=] { return real_clockrdlock(lock, clock, limit); });
}
WEFT_POSIX_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock,
                                                 const timespec* limit) noexcept {
  return take_until(lock, kWriting, clock, *limit, __builtin_return_address(0),
                    [=] { return real_clockwrlock(lock, clock, limit); });
}
WEFT_POSIX_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  return release(lock, false, [=] { return real_rwunlock(lock); });
}

#endif

// A running initialization counts as a lock. If another fiber of the thread waited for it, the
// thread could not run the fiber that has to finish it. std::call_once() calls this function, too.
WEFT_POSIX_EXPORT int pthread_once(pthread_once_t* control, void (*initialize)()) {
  struct Held {
    Held() noexcept { ++here().held; }
    ~Held() { --here().held; }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
  };
  const Held during;
  return real_once(control, initialize);
}

}  // extern "C"

#ifndef WEFT_DEBUG_LOCKS
WEFT_POSIX_HOOK(pthread_mutex_lock);
WEFT_POSIX_HOOK(pthread_mutex_unlock);
WEFT_POSIX_HOOK(pthread_rwlock_rdlock);
WEFT_POSIX_HOOK(pthread_rwlock_unlock);
#endif
WEFT_POSIX_HOOK(pthread_once);

namespace weft::posix {

std::span<const Hook> lock_hooks() noexcept {
  static const std::array hooks{
#ifndef WEFT_DEBUG_LOCKS
      WEFT_POSIX_ENTRY(pthread_mutex_lock), WEFT_POSIX_ENTRY(pthread_mutex_unlock),
      WEFT_POSIX_ENTRY(pthread_rwlock_rdlock), WEFT_POSIX_ENTRY(pthread_rwlock_unlock),
#endif
      WEFT_POSIX_ENTRY(pthread_once)};
  return hooks;
}

}  // namespace weft::posix
