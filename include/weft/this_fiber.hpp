// A fiber's calls about itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <weft/deadline.hpp>
#include <weft/detail/waist.hpp>
#include <weft/until.hpp>

namespace weft::detail {
// Parks, even if the deadline has passed by now.
void sleep_until(Deadline deadline) noexcept;
}  // namespace weft::detail

// All calls may be made from fibers and plain threads; only a yield and a sleep switch to another
// fiber, and only a sleep parks. They synchronize with nothing.
namespace weft::this_fiber {

// Lets the fibers that are ready on this worker run first. A plain thread yields its processor.
void yield() noexcept;
// Lets others run if the calling fiber's turn is over: it has gone on for RuntimeOptions::turn
// without having had to wait. For loops that call nothing else of weft: it costs one load. All
// calls that may wait do the same. Nothing on a plain thread.
inline void yield_if_due() noexcept { detail::give_way_if_due(); }

// Parks until the deadline has passed; never returns early.
void sleep_until(Deadline deadline) noexcept;
// Does the same as sleep_until(), so long from now; returns at once for nothing or less.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> duration) noexcept {
  // Said without a look at the clock, which is a good part of what a sleep costs.
  if (duration > duration.zero()) detail::sleep_until(Deadline::after(duration));
}
// Does the same as sleep_until() of a Deadline.
template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> time) noexcept {
  sleep_until(Deadline::at(time));
}

// Does the same as sleep_until(), but `until` may end the sleep too. Returns true when the whole
// time has been slept.
[[nodiscard]] bool sleep_until(Deadline deadline, const Until& until) noexcept;
// Does the same as sleep_until() with the same limit, for `duration` from now.
template <class Rep, class Period>
[[nodiscard]] bool sleep_for(std::chrono::duration<Rep, Period> duration,
                             const Until& until) noexcept {
  return sleep_until(Deadline::after(duration), until);
}

// Unique in the process among all fibers ever started; 0 on a plain thread.
[[nodiscard]] std::uint64_t id() noexcept;

// The calling fiber's name; empty on a plain thread. Valid until the fiber ends or is renamed.
[[nodiscard]] std::string_view name() noexcept;
// Copies the first 31 characters. Does nothing on a plain thread.
void set_name(std::string_view name) noexcept;

// Gives the memory back that deep calls have left on the calling fiber's stack, below the calls
// that it is in now: for a fiber that has made such a call, a handshake or a parser say, and will
// wait for long. Costs a system call. Not for code on a stack of its own, such as a coroutine's,
// whose memory is in a frame of the fiber: what lies between that frame and where the fiber left
// its own stack would be lost. Does nothing on other stacks and on plain threads, nor where memory
// is locked.
void trim_stack() noexcept;

// Returns true when called from a fiber, false from a plain thread and from a handler that the
// runtime calls on a worker, outside of fibers: RuntimeOptions::on_deadlock. In such a handler this
// namespace behaves as on a plain thread.
[[nodiscard]] bool is_fiber() noexcept;

// While one lives, the fiber that made it must not park or yield; if it does, the process ends with
// a sentence and a dump. For code that would break if it went on on another thread, because it
// keeps something of this one: the address of a thread_local, a lock that belongs to threads.
// Always checked, also where the call would not have had to wait; scopes may be nested. Does
// nothing on a plain thread. Never parks.
class NoSwitch {
 public:
  // The calling fiber must not switch from now on.
  NoSwitch() noexcept;
  // Must run by the same fiber. It may switch again, unless there is another scope around.
  ~NoSwitch();
  NoSwitch(const NoSwitch&) = delete;
  NoSwitch& operator=(const NoSwitch&) = delete;
};

// Returns whether the calling fiber may park now: false while it is in a NoSwitch scope. True on a
// plain thread. From fibers and plain threads; never parks.
[[nodiscard]] bool may_switch() noexcept;

// While one lives, the fiber that made it keeps its worker thread, whatever it waits for: for calls
// of libraries that keep things by thread. A fiber that is pinned already keeps its thread anyway.
// Scopes may be nested; a fiber ends them in the reverse order of their beginning. While that
// worker is stuck in another fiber, no other worker can run this one. Does nothing on a plain
// thread. Never parks.
class Pin {
 public:
  // The calling fiber stays on this thread from now on.
  Pin() noexcept;
  // The same fiber ends the scope. Other workers may run it again, unless another scope or its
  // spawner pins it.
  ~Pin();
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  bool pins_ = false;  // The fiber was not pinned before.
};

}  // namespace weft::this_fiber
