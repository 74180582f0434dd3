// The event source of a world. Its worker calls it when no fiber is ready.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>

#include "io/poller.hpp"
#include "libs/sim/real_hosts.hpp"

namespace weft::sim {

class RunState;
class Wires;
struct Socket;

// Lets the virtual time pass.
class Timekeeper {
 public:
  // Returns the next timer of the fibers.
  [[nodiscard]] virtual Deadline next_timer() const noexcept = 0;
  // Moves the clock to `next`, the next moment at which anything can happen, because no fiber is
  // ready. If it is never(), the run fails with a deadlock. Returns how many fibers it woke.
  virtual std::size_t pass_time(Deadline next) noexcept = 0;

 protected:
  ~Timekeeper() = default;
};

// A poller that watches simulated sockets, and lets virtual time pass where other pollers wait. It
// waits for the system only before a world begins, after its end, and for descriptors and threads
// that the world lets in.
class Events final : public io::Poller, private SystemWatch {
 public:
  Events(RunState& run, Wires& wires, Timekeeper& timekeeper);
  // Drops all descriptors that are still registered.
  ~Events() override;

  [[nodiscard]] std::size_t wait(Deadline deadline) noexcept override;
  void interrupt() noexcept override;
  // See World::let_in().
  void let_in(std::string_view kind);
  // Returns whether a fiber's call to socket() must fail; if so, also fails the run.
  [[nodiscard]] bool refuses_socket(int family) noexcept;
  [[nodiscard]] bool lets_in_threads() const noexcept { return lets_in_threads_; }
  // Returns whether anything outside of the simulation may still wake a fiber.
  [[nodiscard]] bool may_hear_from_outside() const noexcept {
    return watched_ > 0 || lets_in_threads_;
  }
  [[nodiscard]] RealHosts& real_hosts() noexcept { return real_hosts_; }
  // Closes the system's socket of a simulated socket, if it has one.
  void close_real(Socket& socket) noexcept;

 private:
  int control(int operation, int descriptor, epoll_event& event) noexcept override;
  // Does the same as control(), for a descriptor of the system.
  int control_system(int operation, int descriptor, epoll_event& event) noexcept;
  int watch_system(int descriptor, epoll_event event) noexcept override;
  void unwatch_system(int descriptor) noexcept override;
  // `link` is the target of a descriptor's link in /proc/self/fd.
  [[nodiscard]] bool lets_in(std::string_view link) const noexcept;
  std::size_t look() noexcept;
  // Waits in real time for events that World::let_in() admits, or only checks for them. Returns how
  // many fibers it woke, and sets `stands_still` if the virtual time must not pass yet.
  std::size_t wait_outside(bool looks_only, bool& stands_still) noexcept;

  RunState& run_;
  Wires& wires_;
  Timekeeper& timekeeper_;
  std::vector<std::string> let_in_;
  bool lets_in_threads_ = false;
  std::size_t watched_ = 0;  // The number of watched descriptors of the system.
  // Relaxed: the queue of the wakes publishes the fibers.
  detail::Atomic<bool> was_interrupted_{false};
  RealHosts real_hosts_;
};

}  // namespace weft::sim
