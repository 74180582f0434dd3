// Controls the calling fiber.
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

// Lets the ready fibers of the caller's worker run first. A plain thread yields its processor.
void yield() noexcept;
// Yields if the fiber has run for RuntimeOptions::turn without a wait. Most calls that may
// wait also do this; a loop without such calls may use yield_if_due(), which costs one load. Has no
// effect on a plain thread.
inline void yield_if_due() noexcept { detail::give_way_if_due(); }

// Parks until the deadline has passed; never returns early.
void sleep_until(Deadline deadline) noexcept;
// Sleeps for `duration`; returns at once if it is not positive.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> duration) noexcept {
  // The check does not read the clock, because reading it is a large part of the cost of a sleep.
  if (duration > duration.zero()) detail::sleep_until(Deadline::after(duration));
}
// Sleeps until `time`, as the overload for a Deadline does.
template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> time) noexcept {
  sleep_until(Deadline::at(time));
}

// Sleeps until `deadline`, but `until` may end the sleep early. Returns false in that case.
[[nodiscard]] bool sleep_until(Deadline deadline, const Until& until) noexcept;
// Sleeps for `duration`, but `until` may end the sleep.
template <class Rep, class Period>
[[nodiscard]] bool sleep_for(std::chrono::duration<Rep, Period> duration,
                             const Until& until) noexcept {
  return sleep_until(Deadline::after(duration), until);
}

// Returns a number that is unique among all fibers of the process; 0 on a plain thread.
[[nodiscard]] std::uint64_t id() noexcept;

// Returns the calling fiber's name, or an empty view; valid until the fiber ends or is renamed.
[[nodiscard]] std::string_view name() noexcept;
// Sets the name to the first 31 characters of `name`. Has no effect on a plain thread.
void set_name(std::string_view name) noexcept;

// Gives the unused memory of the calling fiber's stack back to the system, with a system call. Use
// it in a fiber that has made a deep call, such as a handshake, and will wait for a long time. Do
// not call it on another stack, such as a coroutine's, that lies within a frame of the fiber.
// Otherwise the data between that stack and the fiber's innermost frame would be lost. Has no
// effect on a stack outside the fiber's stack, on a plain thread, or after mlockall().
void trim_stack() noexcept;

// Returns whether the caller is a fiber. RuntimeOptions::on_deadlock runs outside of fibers: a
// sleep in it ends the process, and the other functions here act as on a plain thread.
[[nodiscard]] bool is_fiber() noexcept;

// While this object lives, its fiber must not park or yield; otherwise the process ends with a
// report and a dump. A NoSwitch protects code that depends on its thread, for example on the
// address of a thread_local. Calls that can wait are permitted if they do not wait; yield() is
// never permitted. Scopes nest. Has no effect on a plain thread.
// Context: the fiber or plain thread that makes the object must destroy it; no call parks.
class NoSwitch {
 public:
  // Begins the scope.
  NoSwitch() noexcept;
  // Ends the scope; an outer scope stays in effect.
  ~NoSwitch();
  NoSwitch(const NoSwitch&) = delete;
  NoSwitch& operator=(const NoSwitch&) = delete;
};

// Returns false in a NoSwitch scope of the calling fiber, otherwise true.
[[nodiscard]] bool may_switch() noexcept;

// While this object lives, its fiber keeps its worker thread across waits. Use it for libraries
// that store data per thread. Scopes nest. While another fiber blocks that worker, this fiber
// cannot run. Has no effect on a plain thread.
// Context: the fiber or plain thread that makes the object must destroy it; no call parks.
class Pin {
 public:
  // Begins the scope.
  Pin() noexcept;
  // Ends the scope; other workers may run the fiber unless an outer scope or its spawner pins it.
  ~Pin();
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  bool pins_ = false;  // Whether this scope has pinned the fiber.
};

}  // namespace weft::this_fiber
