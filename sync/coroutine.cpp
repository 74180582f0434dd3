// Coroutines wait as fibers do. The fiber in which a coroutine will continue is made first, and
// enters the list of waiters. So a waker treats it like any other fiber.
#include <weft/coroutine.hpp>

#include <weft/detail/alarm.hpp>
#include <weft/detail/waiter.hpp>

namespace weft::detail {

[[gnu::noinline]] void resume_when_ready(SelectCase& one, bool& completed,
                                         std::coroutine_handle<> coroutine, WaitReason reason) {
  const Waker fiber = spawn_parked(Task([coroutine] { coroutine.resume(); }), reason);
  SpinLock& lock = *one.lock();
  for (;;) {
    lock.lock();
    if (!one.is_ready()) break;
    lock.unlock();
    if (one.attempt()) {
      // The coroutine could continue here, but its fiber exists and must be woken once.
      completed = true;
      wake(fiber);
      return;
    }
  }
  one.waiter().waker = fiber;
  one.list().push_back(one.waiter());
  // The last access to the case: once the lock is released, the coroutine continues and the case is
  // gone.
  lock.unlock();
}

[[gnu::noinline]] void resume_at(Deadline deadline, std::coroutine_handle<> coroutine) {
  // The handle is destroyed, which does not cancel the alarm.
  const AlarmHandle alarm(set_alarm(deadline, Task([coroutine] { coroutine.resume(); })));
}

}  // namespace weft::detail
