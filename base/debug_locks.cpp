// Replaces the C library's lock functions, to count the locks that a thread holds.
//
// The functions below replace the C library's functions in the whole program, including its shared
// libraries, and call the original functions. The C library itself does not call the functions
// below. So a wait for a condition variable, which unlocks its mutex and locks it again, does not
// change the count.
#include "base/debug_locks.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>
#include <weft/detail/atomic.hpp>

namespace weft::base {

namespace {

using detail::relaxed;

thread_local constinit int held = 0;

[[gnu::noinline]] void count(int change) noexcept { held += change; }

// A function of the C library, looked up by its first caller.
template <class... Arguments>
class Real {
 public:
  constexpr explicit Real(const char* name) noexcept : name_(name) {}

  int lock(Arguments... arguments) noexcept {
    const int error = find()(arguments...);
    // EOWNERDEAD: the previous owner died with the mutex locked, and the caller now owns the mutex.
    if (error == 0 || error == EOWNERDEAD) count(1);
    return error;
  }
  int unlock(Arguments... arguments) noexcept {
    const int error = find()(arguments...);
    if (error == 0) count(-1);
    return error;
  }

 private:
  using Function = int (*)(Arguments...);

  [[nodiscard]] Function find() noexcept {
    Function function = function_.load(relaxed);  // Relaxed: its code was loaded before.
    if (function == nullptr) {
      function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name_));
      function_.store(function, relaxed);
    }
    return function;
  }

  const char* name_;
  detail::Atomic<Function> function_{nullptr};
};

template <class Lock>
using Plain = Real<Lock*>;
template <class Lock>
using Timed = Real<Lock*, const timespec*>;
template <class Lock>
using Clocked = Real<Lock*, clockid_t, const timespec*>;

constinit Plain<pthread_mutex_t> mutex_lock("pthread_mutex_lock");
constinit Plain<pthread_mutex_t> mutex_trylock("pthread_mutex_trylock");
constinit Timed<pthread_mutex_t> mutex_timedlock("pthread_mutex_timedlock");
constinit Clocked<pthread_mutex_t> mutex_clocklock("pthread_mutex_clocklock");
constinit Plain<pthread_mutex_t> mutex_unlock("pthread_mutex_unlock");
constinit Plain<pthread_rwlock_t> rwlock_rdlock("pthread_rwlock_rdlock");
constinit Plain<pthread_rwlock_t> rwlock_tryrdlock("pthread_rwlock_tryrdlock");
constinit Timed<pthread_rwlock_t> rwlock_timedrdlock("pthread_rwlock_timedrdlock");
constinit Clocked<pthread_rwlock_t> rwlock_clockrdlock("pthread_rwlock_clockrdlock");
constinit Plain<pthread_rwlock_t> rwlock_wrlock("pthread_rwlock_wrlock");
constinit Plain<pthread_rwlock_t> rwlock_trywrlock("pthread_rwlock_trywrlock");
constinit Timed<pthread_rwlock_t> rwlock_timedwrlock("pthread_rwlock_timedwrlock");
constinit Clocked<pthread_rwlock_t> rwlock_clockwrlock("pthread_rwlock_clockwrlock");
constinit Plain<pthread_rwlock_t> rwlock_unlock("pthread_rwlock_unlock");

}  // namespace

[[gnu::noinline]] int locks_held() noexcept { return held; }

}  // namespace weft::base

extern "C" {

using namespace weft::base;  // NOLINT(google-build-using-namespace): only names of this file.

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept { return mutex_lock.lock(mutex); }
int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept { return mutex_trylock.lock(mutex); }
int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) noexcept {
  return mutex_timedlock.lock(mutex, until);
}
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                            const timespec* until) noexcept {
  return mutex_clocklock.lock(mutex, clock, until);
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept { return mutex_unlock.unlock(mutex); }
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept { return rwlock_rdlock.lock(lock); }
int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  return rwlock_tryrdlock.lock(lock);
}
int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* until) noexcept {
  return rwlock_timedrdlock.lock(lock, until);
}
int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock,
                               const timespec* until) noexcept {
  return rwlock_clockrdlock.lock(lock, clock, until);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept { return rwlock_wrlock.lock(lock); }
int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  return rwlock_trywrlock.lock(lock);
}
int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* until) noexcept {
  return rwlock_timedwrlock.lock(lock, until);
}
int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock,
                               const timespec* until) noexcept {
  return rwlock_clockwrlock.lock(lock, clock, until);
}
int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept { return rwlock_unlock.unlock(lock); }

}  // extern "C"
