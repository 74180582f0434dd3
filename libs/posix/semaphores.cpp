// POSIX semaphores. A table, keyed by the address of the semaphore, lists the fibers that wait.
// sem_post() first posts as usual, and then wakes one such fiber. A signal handler may call
// sem_post(). Therefore it allocates nothing, takes its lock with signals blocked, and wakes the
// fiber through an eventfd.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <weft/context.hpp>
#include <weft/detail/first_use.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/this_fiber.hpp>

#include "libs/posix/hooks.hpp"
#include "libs/posix/shards.hpp"
#include "libs/posix/waiting.hpp"

namespace weft::posix {

namespace {

constinit Real<decltype(::sem_wait)> real_wait("sem_wait");
constinit Real<decltype(::sem_timedwait)> real_timedwait("sem_timedwait");
constinit Real<decltype(::sem_clockwait)> real_clockwait("sem_clockwait");
constinit Real<decltype(::sem_post)> real_post("sem_post");

class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// One waiting fiber; the object is on the fiber's stack. Guarded by the shard's lock. Not
// annotated, because no member leads to that lock.
struct Waiter {
  const void* semaphore;
  int descriptor;  // An eventfd.
  Waiter* next = nullptr;
  Waiter* previous = nullptr;
  bool is_listed = false;
};

// Order
//   [post]  list counts the waiter before the fiber tries the semaphore once more; wake_one reads
//           the count after the semaphore has been posted. Both sides have a seq_cst fence between
//           the two steps, so at least one side sees the other.
class Shard {
 public:
  void list(Waiter& waiter) noexcept {
    const SignalsBlocked blocked;
    {
      const detail::SpinGuard guard(lock_);
      waiter.next = nullptr;
      waiter.previous = last_;
      (last_ == nullptr ? first_ : last_->next) = &waiter;
      last_ = &waiter;
      waiter.is_listed = true;
      waiting_.fetch_add(1, detail::relaxed);
    }
    detail::full_fence();  // [post]
  }
  // Returns false if a post has chosen the waiter.
  bool remove(Waiter& waiter) noexcept {
    const SignalsBlocked blocked;
    const detail::SpinGuard guard(lock_);
    if (!waiter.is_listed) return false;
    unlink(waiter);
    return true;
  }
  // Wakes the first waiter for a semaphore. The semaphore itself may be destroyed by now.
  void wake_one(const void* semaphore) noexcept {
    detail::full_fence();  // [post]
    // Relaxed: the fence orders it.
    if (waiting_.load(detail::relaxed) == 0) [[likely]]
      return;
    const int error = errno;
    {
      const SignalsBlocked blocked;
      const detail::SpinGuard guard(lock_);
      Waiter* waiter = first_;
      while (waiter != nullptr && waiter->semaphore != semaphore) waiter = waiter->next;
      if (waiter != nullptr) {
        unlink(*waiter);
        (void)::eventfd_write(waiter->descriptor, 1);
      }
    }
    errno = error;
  }

 private:
  void unlink(Waiter& waiter) noexcept WEFT_REQUIRES(lock_) {
    waiter.is_listed = false;
    (waiter.previous == nullptr ? first_ : waiter.previous->next) = waiter.next;
    (waiter.next == nullptr ? last_ : waiter.next->previous) = waiter.previous;
    waiting_.fetch_sub(1, detail::relaxed);
  }

  detail::SpinLock lock_;
  Waiter* first_ WEFT_GUARDED_BY(lock_) = nullptr;
  Waiter* last_ WEFT_GUARDED_BY(lock_) = nullptr;
  detail::Atomic<std::uint32_t> waiting_{0};
};
constinit Shards<Shard> shards;

// Returns a word of a semaphore. sem_t has no named members.
int word_of(const sem_t& semaphore, std::size_t index) noexcept {
  int word = 0;
  std::memcpy(&word, reinterpret_cast<const char*>(&semaphore) + index * sizeof word, sizeof word);
  return word;
}

// The word that differs between shared and private semaphores, and its value in a private
// semaphore. Aligned so that an atomic SharedWord needs no lock.
struct alignas(8) SharedWord {
  int if_private = 0;
  std::uint16_t index = 0;
  bool is_known = false;
};

SharedWord find_shared_word() noexcept {
  sem_t plain{};
  sem_t shared{};
  if (::sem_init(&plain, 0, 0) != 0 || ::sem_init(&shared, 1, 0) != 0) return {};
  SharedWord found;
  int differences = 0;
  for (std::size_t i = 0; i < sizeof(sem_t) / sizeof(int); ++i) {
    if (word_of(plain, i) == word_of(shared, i)) continue;
    ++differences;
    found = {word_of(plain, i), static_cast<std::uint16_t>(i), true};
  }
  return differences == 1 ? found : SharedWord{};
}

const char* reason_not_to_park(const sem_t& semaphore) noexcept {
  if (const char* reason = posix::reason_not_to_park()) return reason;
  const SharedWord word = detail::computed_once<&find_shared_word>();
  if (!word.is_known) return "an unknown C library";
  return word_of(semaphore, word.index) == word.if_private ? nullptr : "shared by processes";
}

// Creates an eventfd and waits for it. It needs no duplicate, because no other code has its number.
class PostWatch {
 public:
  [[nodiscard]] bool open() noexcept {
    const int descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor < 0) return false;
    auto [watch, error] = io::Watch::adopt(descriptor);
    if (error) ::close(descriptor);
    watch_ = std::move(watch);
    return !error;
  }
  [[nodiscard]] int descriptor() const noexcept { return watch_.native_handle(); }
  // Returns when a post has written to the eventfd, or at `until`.
  void wait(const Until& until) noexcept {
    (void)watch_.wait(io::Ready::read, until);
    eventfd_t count = 0;
    (void)::eventfd_read(descriptor(), &count);
  }

 private:
  io::Watch watch_;
};

constexpr int kNoDescriptor = -1;

// Returns 0, an errno, or kNoDescriptor. A context ends timed waits only: callers expect no error
// from other waits.
int wait_parked(FiberState& state, sem_t* semaphore, Deadline limit) noexcept {
  if (::sem_trywait(semaphore) == 0) return 0;
  if (errno != EAGAIN) return errno;
  const OwnCalls own(state);
  const Until until = limit.is_never() ? Until() : this_fiber::until().but_before(limit);
  PostWatch watch;
  if (!watch.open()) return kNoDescriptor;
  Shard& shard = shards.of(semaphore);
  Waiter waiter{semaphore, watch.descriptor()};
  for (;;) {
    shard.list(waiter);
    const bool has_it = ::sem_trywait(semaphore) == 0;
    if (!has_it) watch.wait(until);
    const bool was_chosen = !shard.remove(waiter);
    if (has_it) {
      // The fiber may have taken a post other than the post that chose it.
      if (was_chosen) shard.wake_one(semaphore);
      return 0;
    }
    // This try follows the removal, so a post that chose this fiber is not lost.
    if (::sem_trywait(semaphore) == 0) return 0;
    if (!until.is_over()) continue;
    // A caller whose context has ended may loop until another fiber of this worker posts.
    if (!limit.passed()) this_fiber::yield();
    return ETIMEDOUT;
  }
}

template <class Plain>
int wait_in_scope(FiberState& state, const Call& call, sem_t* semaphore, Deadline limit,
                  Plain plain) {
  const char* reason = reason_not_to_park(*semaphore);
  if (reason == nullptr) {
    const int error_before = errno;
    const int error = wait_parked(state, semaphore, limit);
    if (error > 0) return fail(error);
    errno = error_before;
    if (error == 0) return 0;
    reason = "no descriptor to wait on";
  }
  const BlockedCall blocked(call, reason);
  return plain();
}

// A signal handler may call sem_post(), and must not be the first caller to look the function up.
[[gnu::constructor]] void find_post() noexcept { real_post.find(); }

}  // namespace

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

WEFT_POSIX_EXPORT int sem_wait(sem_t* semaphore) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_wait(semaphore);
  return wait_in_scope(*state, {"sem_wait", __builtin_return_address(0)}, semaphore,
                       weft::Deadline::never(), [=] { return real_wait(semaphore); });
}

WEFT_POSIX_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* time) {
  FiberState* state = current_scope();
  if (state == nullptr || !is_valid(*time)) return real_timedwait(semaphore, time);
  return wait_in_scope(*state, {"sem_timedwait", __builtin_return_address(0)}, semaphore,
                       limit_at(CLOCK_REALTIME, *time),
                       [=] { return real_timedwait(semaphore, time); });
}

WEFT_POSIX_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time) {
  FiberState* state =
      clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME ? current_scope() : nullptr;
  if (state == nullptr || !is_valid(*time)) return real_clockwait(semaphore, clock, time);
  return wait_in_scope(*state, {"sem_clockwait", __builtin_return_address(0)}, semaphore,
                       limit_at(clock, *time),
                       [=] { return real_clockwait(semaphore, clock, time); });
}

WEFT_POSIX_EXPORT int sem_post(sem_t* semaphore) noexcept {
  const int result = real_post(semaphore);
  shards.of(semaphore).wake_one(semaphore);
  return result;
}

}  // extern "C"

WEFT_POSIX_HOOK(sem_wait);
WEFT_POSIX_HOOK(sem_timedwait);
WEFT_POSIX_HOOK(sem_clockwait);
WEFT_POSIX_HOOK(sem_post);

namespace weft::posix {

void forget_semaphores() noexcept { shards.forget(); }

std::span<const Hook> semaphore_hooks() noexcept {
  static const std::array hooks{WEFT_POSIX_ENTRY(sem_wait), WEFT_POSIX_ENTRY(sem_timedwait),
                                WEFT_POSIX_ENTRY(sem_clockwait), WEFT_POSIX_ENTRY(sem_post)};
  return hooks;
}

}  // namespace weft::posix
