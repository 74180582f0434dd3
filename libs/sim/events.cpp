#include "libs/sim/events.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>

#include "libs/sim/run_state.hpp"
#include "libs/sim/shelter.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

namespace {

// Before each step of the virtual time, wait at most this long for the system's descriptors.
constexpr std::chrono::milliseconds kRealWait{1};

// Returns the name that the system gives a descriptor, such as "pipe:[123]".
std::string kind_of(int descriptor) {
  std::array<char, 256> name;
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), name.data(), name.size());
  return size < 0 ? "unknown" : std::string(name.data(), static_cast<std::size_t>(size));
}

}  // namespace

// The source always counts a watch, so that an idle worker waits here and not on its futex.
Events::Events(RunState& run, Wires& wires, Timekeeper& timekeeper)
    : run_(run), wires_(wires), timekeeper_(timekeeper), real_hosts_(*this) {
  wires_.tell_of_closes([this](Socket& socket) { close_real(socket); });
  (void)begin_watch();
}

Events::~Events() {
  while (watches_anything()) end_watch();
}

void Events::interrupt() noexcept {
  was_interrupted_.store(true, detail::relaxed);
  Poller::interrupt();
}

void Events::let_in(std::string_view kind) {
  if (kind == "thread") {
    lets_in_threads_ = true;
  } else {
    let_in_.emplace_back(kind);
  }
}

bool Events::lets_in(std::string_view link) const noexcept {
  return std::ranges::any_of(let_in_,
                             [&](const std::string& kind) { return link.starts_with(kind); });
}

// The simulation itself opens sockets to hosts that the world lets in.
bool Events::refuses_socket(int family) noexcept {
  if (family != AF_INET && family != AF_INET6) return false;
  if (!run_.is_running() || run_.is_sheltered() || lets_in("socket:")) return false;
  const Shelter shelter(&run_);
  run_.fail("'" + run_.here().name + "' calls socket(" +
            (family == AF_INET ? "AF_INET" : "AF_INET6") +
            "): the system's sockets are refused in a simulation, which has those of weft::net; "
            "World::let_in(\"socket\") admits them");
  return true;
}

std::size_t Events::look() noexcept {
  const Shelter shelter(&run_);
  wires_.run_due();
  const auto edges = wires_.take_edges();
  return edges.empty() ? 0 : deliver(edges, true);
}

std::size_t Events::wait(Deadline deadline) noexcept {
  if (!run_.is_running()) {
    return deadline == Deadline::past() ? 0 : Poller::wait(Deadline::never());
  }
  std::size_t woken = look();
  bool stands_still = false;
  if (may_hear_from_outside()) {
    woken += wait_outside(deadline == Deadline::past() || woken != 0, stands_still);
  }
  if (deadline == Deadline::past() || woken != 0 || stands_still) return woken;
  const std::size_t passed =
      timekeeper_.pass_time(std::min(timekeeper_.next_timer(), wires_.next()));
  return passed + look();
}

// A wait takes real time and no virtual time.
std::size_t Events::wait_outside(bool looks_only, bool& stands_still) noexcept {
  if (looks_only) return Poller::wait(Deadline::past());
  const std::chrono::nanoseconds left(real_hosts_.wait_left());
  const std::size_t woken =
      Poller::wait(Deadline::after(std::max<std::chrono::nanoseconds>(left, kRealWait)));
  // A wait may end early.
  stands_still = real_hosts_.wait_left() > 0 || was_interrupted_.exchange(false, detail::relaxed);
  return woken;
}

int Events::watch_system(int descriptor, epoll_event event) noexcept {
  const io::CallResult added =
      io::result_of([&] { return Poller::control(EPOLL_CTL_ADD, descriptor, event); });
  if (added.error == 0) ++watched_;
  return added.error;
}

void Events::unwatch_system(int descriptor) noexcept {
  epoll_event unused{};
  (void)Poller::control(EPOLL_CTL_DEL, descriptor, unused);
  --watched_;
}

// A host that ends closes sockets that its fibers still watch.
void Events::close_real(Socket& socket) noexcept {
  const int system = real_hosts_.system_of(socket.descriptor);
  if (system < 0) return;
  if (socket.is_watched) unwatch_system(system);
  real_hosts_.close(socket.descriptor);
}

int Events::control(int operation, int descriptor, epoll_event& event) noexcept {
  const Shelter shelter(&run_);
  if (!wires_.owns(descriptor)) return control_system(operation, descriptor, event);
  const int system = real_hosts_.system_of(descriptor);
  if (operation != EPOLL_CTL_ADD) {
    wires_.unwatch(descriptor);
    if (system >= 0) unwatch_system(system);
    return 0;
  }
  constexpr std::array kErrors{ENOSPC, ENOMEM};
  int error = run_.draw_error(run_.here().faults.sockets, "epoll_ctl", kErrors);
  if (error == 0) error = wires_.watch(descriptor, event);
  if (error == 0 && system >= 0) error = watch_system(system, event);
  errno = error;
  return error == 0 ? 0 : -1;
}

int Events::control_system(int operation, int descriptor, epoll_event& event) noexcept {
  if (operation != EPOLL_CTL_ADD) {
    const int result = Poller::control(operation, descriptor, event);
    // The system has already removed a descriptor that was closed before.
    if ((result == 0 || errno == EBADF) && watched_ > 0) --watched_;
    return result;
  }
  const std::string kind = kind_of(descriptor);
  if (lets_in(kind)) {
    const int result = Poller::control(operation, descriptor, event);
    if (result == 0) ++watched_;
    return result;
  }
  run_.fail("descriptor " + std::to_string(descriptor) + ", " + kind +
            ", is the system's: epoll_ctl() is refused in a simulation, which has sockets of its "
            "own and no pipes, terminals, processes or signals; World::let_in() admits it");
  errno = ENOSYS;
  return -1;
}

}  // namespace weft::sim
