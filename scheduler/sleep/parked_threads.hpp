// Counts the plain threads that wait for a fiber, or for each other.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// Counts, for the whole process, the threads that are parked in the library without a deadline: the
// kernel does not end such a wait, only a fiber or a thread that runs. The counters only grow, so
// two equal readings of both show that all values held at one moment. The count is never too high:
// a thread is counted once it does nothing more, and its waker uncounts it before the wake. Any
// thread may call these; they share one line, on paths that make a system call anyway.
// Order
//   [parked]  begin counts (release) -> read loads begun (acquire): everything that the waiting
//             thread did before, including the threads that it uncounted, is visible.
class ParkedThreads {
 public:
  struct Counts {
    std::uint64_t begun;
    std::uint64_t ended;
    friend bool operator==(const Counts&, const Counts&) = default;
    // Wraps below 0 for the moment in which a wait has ended before it was counted.
    [[nodiscard]] std::uint64_t parked() const noexcept { return begun - ended; }
  };

  // A thread that is about to sleep calls it last.
  static void begin() noexcept { begun_.fetch_add(1, detail::release); }  // [parked]
  // The waker calls it, before the wake.
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
