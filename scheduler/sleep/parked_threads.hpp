// Counts the plain threads that wait for a fiber, or for each other.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// Counts, for the process, threads that are parked in the library, and do not act at a deadline.
// Only a running fiber or thread ends such a wait, never the kernel. The counters only grow. If two
// readings of both counters are equal, the counters therefore had these values at one moment. The
// count is never too high: a thread counts itself just before it sleeps, and its waker subtracts
// the thread before the wake. Any thread may call the functions. The counters share a cache line. A
// thread writes it only when it also makes a system call.
// Order
//   [parked]  begin() counts the thread (release) -> read() loads begun_ (acquire): all earlier
//             actions of the thread, such as a call of end(), are visible.
class ParkedThreads {
 public:
  struct Counts {
    std::uint64_t begun;
    std::uint64_t ended;
    friend bool operator==(const Counts&, const Counts&) = default;
    // The difference wraps below 0 while a waker has subtracted a thread that has not counted
    // itself yet.
    [[nodiscard]] std::uint64_t parked() const noexcept { return begun - ended; }
  };

  // A thread calls it directly before it sleeps.
  static void begin() noexcept { begun_.fetch_add(1, detail::release); }  // [parked]
  // The waker calls it, before the wake; a thread in Quiescence calls it after its own sleep.
  static void end() noexcept { ended_.fetch_add(1, detail::release); }  // [parked]
  [[nodiscard]] static Counts read() noexcept {
    const std::uint64_t begun = begun_.load(detail::acquire);  // [parked]
    return {begun, ended_.load(detail::acquire)};              // [parked]
  }
  // Runs in the child of a fork, on its only thread, so relaxed suffices.
  static void reset() noexcept {
    begun_.store(0, detail::relaxed);
    ended_.store(0, detail::relaxed);
  }

 private:
  static inline detail::Atomic<std::uint64_t> begun_{0};
  static inline detail::Atomic<std::uint64_t> ended_{0};
};

}  // namespace weft::scheduler
