// Coroutines that wait as fibers do: the fiber in which a coroutine will go on is made first, and
// that fiber is in the list. Its waker sees no difference.
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
      // It could go on here, but the fiber is there and has to be woken once.
      completed = true;
      wake(fiber);
      return;
    }
  }
  one.waiter().waker = fiber;
  one.list().push_back(one.waiter());
  // The last access to anything: the coroutine goes on, and the case is gone, once it is released.
  lock.unlock();
}

[[gnu::noinline]] void resume_at(Deadline deadline, std::coroutine_handle<> coroutine) {
  // The handle is dropped, which leaves the alarm as it is.
  const AlarmHandle alarm(set_alarm(deadline, Task([coroutine] { coroutine.resume(); })));
}

}  // namespace weft::detail
