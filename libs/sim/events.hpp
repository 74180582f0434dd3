// The event source of a world: where its worker comes when no fiber is ready.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/poller.hpp"

namespace weft::sim {

class Core;
class Wires;

// A poller that watches simulated sockets, and lets virtual time pass where another one waits. It
// waits for the system only before a world begins, after its end, and for descriptors of the system
// that were let in.
class Events final : public io::Poller {
 public:
  Events(Core& core, Wires& wires);
  // Whatever is registered still is given up.
  ~Events() override;

  [[nodiscard]] std::size_t wait(Deadline deadline) noexcept override;
  // Fibers may wait for descriptors of the system whose link in /proc/self/fd begins so.
  void let_in(std::string_view kind) { let_in_.emplace_back(kind); }
  [[nodiscard]] bool watches_system() const noexcept { return watched_ > 0; }

 private:
  int control(int operation, int descriptor, epoll_event& event) noexcept override;
  // The same for a descriptor of the system.
  int control_system(int operation, int descriptor, epoll_event& event) noexcept;
  std::size_t look() noexcept;

  Core& core_;
  Wires& wires_;
  std::vector<std::string> let_in_;
  std::size_t watched_ = 0;  // Descriptors of the system.
};

}  // namespace weft::sim
