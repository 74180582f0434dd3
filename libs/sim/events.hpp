// The event source of a world. Its worker calls it when no fiber is ready.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/poller.hpp"
#include "libs/sim/real_hosts.hpp"

namespace weft::sim {

class Core;
class Wires;
struct Socket;

// A poller that watches simulated sockets, and lets virtual time pass where other pollers wait. It
// waits for the system only before a world begins, after its end, and for descriptors and threads
// that the world lets in.
class Events final : public io::Poller {
 public:
  Events(Core& core, Wires& wires);
  // Gives up what is still registered.
  ~Events() override;

  [[nodiscard]] std::size_t wait(Deadline deadline) noexcept override;
  void interrupt() noexcept override;
  // See World::let_in().
  void let_in(std::string_view kind);
  [[nodiscard]] bool lets_in_threads() const noexcept { return lets_in_threads_; }
  // Returns whether anything outside of the simulation may still wake a fiber.
  [[nodiscard]] bool may_hear_from_outside() const noexcept {
    return watched_ > 0 || lets_in_threads_;
  }
  [[nodiscard]] RealHosts& real_hosts() noexcept { return real_hosts_; }
  // Watches a socket of the system, whose events go to the watch of a simulated socket. Returns 0
  // or an errno.
  int watch_system(int descriptor, epoll_event event) noexcept;
  void unwatch_system(int descriptor) noexcept;
  // Closes the system's socket of a simulated one, if there is one.
  void close_real(Socket& socket) noexcept;

 private:
  int control(int operation, int descriptor, epoll_event& event) noexcept override;
  // Does the same as control(), for a descriptor of the system.
  int control_system(int operation, int descriptor, epoll_event& event) noexcept;
  std::size_t look() noexcept;
  // Waits in real time for what is let in, or only looks. Returns how many fibers it woke, and sets
  // `stands_still` if the virtual time must not pass yet.
  std::size_t wait_outside(bool looks_only, bool& stands_still) noexcept;

  Core& core_;
  Wires& wires_;
  std::vector<std::string> let_in_;
  bool lets_in_threads_ = false;
  std::size_t watched_ = 0;  // The number of watched descriptors of the system.
  // Relaxed: the queue of the wakes publishes the fibers.
  detail::Atomic<bool> was_interrupted_{false};
  RealHosts real_hosts_;
};

}  // namespace weft::sim
