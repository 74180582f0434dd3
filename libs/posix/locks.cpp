// Counts the pthread locks that each thread holds. In builds with debug_locks, which intercepts the
// same functions and counts locks, this file counts initializations only.
#include "libs/posix/locks.hpp"

#include <pthread.h>

#include <array>
#include <cerrno>

#include "libs/posix/hooks.hpp"
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

// The model initial-exec makes an access without a call that may allocate.
__thread int held __attribute__((tls_model("initial-exec"))) = 0;

// Not inlined, because a fiber outside of scopes moves between threads.
[[gnu::noinline]] int locked(int result) noexcept {
  asm volatile("");
  if (result == 0 || result == EOWNERDEAD) ++held;
  return result;
}
[[gnu::noinline]] int unlocked(int result) noexcept {
  asm volatile("");
  // The count stays at 0 if another thread locked the mutex, which POSIX forbids.
  if (result == 0 && held > 0) --held;
  return result;
}

}  // namespace

[[gnu::noinline]] int locks_held() noexcept {
  asm volatile("");
#ifdef WEFT_DEBUG_LOCKS
  return held + base::locks_held();
#else
  return held;
#endif
}

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

#ifndef WEFT_DEBUG_LOCKS
WEFT_POSIX_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  return locked(real_lock(mutex));
}
WEFT_POSIX_EXPORT int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  return locked(real_trylock(mutex));
}
WEFT_POSIX_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* mutex,
                                              const timespec* limit) noexcept {
  return locked(real_timedlock(mutex, limit));
}
WEFT_POSIX_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                              const timespec* limit) noexcept {
  return locked(real_clocklock(mutex, clock, limit));
}
WEFT_POSIX_EXPORT int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  return unlocked(real_unlock(mutex));
}
WEFT_POSIX_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  return locked(real_rdlock(lock));
}
WEFT_POSIX_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  return locked(real_wrlock(lock));
}
WEFT_POSIX_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  return locked(real_tryrdlock(lock));
}
WEFT_POSIX_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  return locked(real_trywrlock(lock));
}
WEFT_POSIX_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock,
                                                 const timespec* limit) noexcept {
  return locked(real_timedrdlock(lock, limit));
}
WEFT_POSIX_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock,
                                                 const timespec* limit) noexcept {
  return locked(real_timedwrlock(lock, limit));
}
WEFT_POSIX_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock,
                                                 const timespec* limit) noexcept {
  return locked(real_clockrdlock(lock, clock, limit));
}
WEFT_POSIX_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock,
                                                 const timespec* limit) noexcept {
  return locked(real_clockwrlock(lock, clock, limit));
}
WEFT_POSIX_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  return unlocked(real_rwunlock(lock));
}

#endif

// A running initialization counts as a lock. If another fiber of the thread waited for it, the
// thread could not run the fiber that has to finish it. std::call_once() calls this function, too.
WEFT_POSIX_EXPORT int pthread_once(pthread_once_t* control, void (*initialize)()) {
  struct Held {
    Held() noexcept { (void)locked(0); }
    ~Held() { (void)unlocked(0); }
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
