#include "libs/sim/events.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "libs/sim/core.hpp"
#include "libs/sim/faults.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

// It always watches something, so that an idle worker comes here and not to its futex.
Events::Events(Core& core, Wires& wires) : core_(core), wires_(wires) { (void)begin_watch(); }

Events::~Events() {
  while (watches_anything()) end_watch();
}

std::size_t Events::look() noexcept {
  const Shelter shelter(&core_);
  wires_.run_due();
  const auto edges = wires_.take_edges();
  return edges.empty() ? 0 : deliver(edges, true);
}

std::size_t Events::wait(Deadline deadline) noexcept {
  if (!core_.is_running()) {
    return deadline == Deadline::past() ? 0 : Poller::wait(Deadline::never());
  }
  const std::size_t woken = look();
  if (deadline == Deadline::past() || woken != 0) return woken;
  const std::size_t passed = core_.pass_time(std::min(core_.next_timer(), wires_.next()));
  return passed + look();
}

int Events::control(int operation, int descriptor, epoll_event& event) noexcept {
  const Shelter shelter(&core_);
  if (operation != EPOLL_CTL_ADD) {
    wires_.unwatch(descriptor);
    return 0;
  }
  int error = ENOSYS;
  if (wires_.owns(descriptor)) {
    constexpr std::array kErrors{ENOSPC, ENOMEM};
    error = core_.draw_error(core_.faults_here().sockets, "epoll_ctl", kErrors);
    if (error == 0) error = wires_.watch(descriptor, event);
  } else {
    core_.fail("descriptor " + std::to_string(descriptor) +
               " is the system's: epoll_ctl() is refused in a simulation, which has sockets of its "
               "own and no pipes, terminals, processes or signals");
  }
  errno = error;
  return error == 0 ? 0 : -1;
}

}  // namespace weft::sim
