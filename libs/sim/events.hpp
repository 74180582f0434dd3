// The event source of a world: where its worker comes when no fiber is ready.
#pragma once

#include "io/poller.hpp"

namespace weft::sim {

class Core;
class Wires;

// A poller that watches simulated sockets, and lets virtual time pass where another one waits. It
// waits for the system only before a world begins and after its end.
class Events final : public io::Poller {
 public:
  Events(Core& core, Wires& wires);
  // Whatever is registered still is given up.
  ~Events() override;

  [[nodiscard]] std::size_t wait(Deadline deadline) noexcept override;

 private:
  int control(int operation, int descriptor, epoll_event& event) noexcept override;
  std::size_t look() noexcept;

  Core& core_;
  Wires& wires_;
};

}  // namespace weft::sim
