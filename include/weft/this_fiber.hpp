// Calls by which a fiber controls itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <weft/deadline.hpp>
#include <weft/detail/turn.hpp>
#include <weft/detail/waist.hpp>
#include <weft/until.hpp>

// Context: fibers and plain threads; only sleeps park, and only yields and sleeps switch to another
// fiber.
namespace weft::this_fiber {

// Lets the ready fibers of this worker run first. A plain thread yields its processor.
void yield() noexcept;
// Yields if the fiber's turn is over: it has run for RuntimeOptions::turn without a wait. All calls
// that may wait also do so; a loop without such calls may use it, at the cost of one load. Has no
// effect on a plain thread.
inline void yield_if_due() noexcept { detail::give_way_if_due(); }

// Parks until the deadline has passed; never returns early.
void sleep_until(Deadline deadline) noexcept;
// Sleeps for `duration`; returns at once if it is not positive.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> duration) noexcept {
  // The check does not read the clock, because that is a considerable part of the cost of a sleep.
  if (duration > duration.zero()) detail::sleep_until(Deadline::after(duration));
}
// Sleeps until `time`, as sleep_until() of a Deadline does.
template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> time) noexcept {
  sleep_until(Deadline::at(time));
}

// Sleeps as above, but `until` may end the sleep. Returns whether the whole time has passed.
[[nodiscard]] bool sleep_until(Deadline deadline, const Until& until) noexcept;
// Sleeps for `duration` with the same limit.
template <class Rep, class Period>
[[nodiscard]] bool sleep_for(std::chrono::duration<Rep, Period> duration,
                             const Until& until) noexcept {
  return sleep_until(Deadline::after(duration), until);
}

// Returns a number that is unique among all fibers of the process; 0 on a plain thread.
[[nodiscard]] std::uint64_t id() noexcept;

// Returns the calling fiber's name, or none. It is valid until the fiber ends or is renamed.
[[nodiscard]] std::string_view name() noexcept;
// Copies the first 31 characters. Has no effect on a plain thread.
void set_name(std::string_view name) noexcept;

// Returns the memory of the calling fiber's stack, below the present calls, to the system. It suits
// a fiber that has made a deep call, such as a handshake, and will wait for a long time. It costs a
// system call. Do not call it on a stack of another kind within a frame of the fiber, such as a
// coroutine's. Data between that frame and the fiber's own last frame would be lost. Has no effect
// on other stacks, on plain threads, and if memory is locked.
void trim_stack() noexcept;

// Returns whether the caller is a fiber. RuntimeOptions::on_deadlock runs outside of fibers: this
// namespace behaves there as on a plain thread.
[[nodiscard]] bool is_fiber() noexcept;

// While it lives, its fiber must not park or yield; otherwise the process ends with a report and a
// dump. It protects code that depends on its thread, such as on the address of a thread_local. The
// check also applies to calls that need not wait. Scopes nest. Has no effect on a plain thread.
// Context: the fiber or plain thread that makes it also destroys it; no call parks.
class NoSwitch {
 public:
  // Begins the scope.
  NoSwitch() noexcept;
  // Ends the scope; an outer scope remains in force.
  ~NoSwitch();
  NoSwitch(const NoSwitch&) = delete;
  NoSwitch& operator=(const NoSwitch&) = delete;
};

// Returns false in a NoSwitch scope of the calling fiber, otherwise true.
[[nodiscard]] bool may_switch() noexcept;

// While it lives, its fiber keeps its worker thread across waits. It suits libraries that store
// data per thread. Scopes nest. While another fiber blocks that worker, this fiber cannot run. Has
// no effect on a plain thread.
// Context: the fiber or plain thread that makes it also destroys it; no call parks.
class Pin {
 public:
  // Begins the scope.
  Pin() noexcept;
  // Ends the scope; other workers may run the fiber unless an outer scope or its spawner pins it.
  ~Pin();
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  bool pins_ = false;  // The fiber was not pinned before.
};

}  // namespace weft::this_fiber
