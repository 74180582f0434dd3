// Counts the plain threads that wait for a fiber, or for each other.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// Counts the process's threads that are parked in the library. Only a running fiber or thread can
// end such a wait; a deadline or the kernel cannot. The thread that writes dumps also counts as
// parked, because it wakes no fiber. The counters only grow. If two successive calls of read()
// return equal values, both counters therefore had these values at the same moment. No thread is
// counted while it may wake a fiber: begin() is called just before the thread sleeps, and end()
// before it continues. Any thread may call the functions. The counters may share a cache line,
// because a thread writes to them only when it also makes a system call, which takes longer.
// Order
//   [parked]  begin() increments begun_ (release) -> read() loads it (acquire): read() then sees
//             all earlier actions of the thread, such as its calls to end().
class ParkedThreads {
 public:
  struct Counts {
    std::uint64_t begun;
    std::uint64_t ended;
    friend bool operator==(const Counts&, const Counts&) = default;
    // The result wraps around if a waker has called end() for a thread that has not yet called
    // begin().
    [[nodiscard]] std::uint64_t parked() const noexcept { return begun - ended; }
  };

  // Called by a thread immediately before it sleeps.
  static void begin() noexcept { begun_.fetch_add(1, detail::release); }  // [parked]
  // Called by a waker before it wakes the thread, or, in Quiescence, by the woken thread itself.
  static void end() noexcept { ended_.fetch_add(1, detail::release); }  // [parked]
  [[nodiscard]] static Counts read() noexcept {
    const std::uint64_t begun = begun_.load(detail::acquire);  // [parked]
    return {begun, ended_.load(detail::acquire)};              // [parked]
  }
  // Runs in a forked child, on its only thread, so relaxed order suffices.
  static void reset() noexcept {
    begun_.store(0, detail::relaxed);
    ended_.store(0, detail::relaxed);
  }

 private:
  static inline detail::Atomic<std::uint64_t> begun_{0};
  static inline detail::Atomic<std::uint64_t> ended_{0};
};

}  // namespace weft::scheduler
