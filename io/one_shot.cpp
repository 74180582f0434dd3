// The calls of one_shot.hpp, as requests to the worker's ring.
#include <weft/detail/one_shot.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "io/ring.hpp"

namespace weft::detail {

#if WEFT_HAS_RING

namespace {

constexpr int kAlways = POLLERR | POLLHUP | POLLNVAL;  // poll() always reports these.

// When a socket wakes a request, the kernel reports all events of that wake, even urgent data that
// has not come. Urgent data alone wakes no request.
bool can_poll(short events) noexcept {
  constexpr int kExact = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM | POLLRDHUP | kAlways;
  return (events & ~kExact) == 0;
}

}  // namespace

OneShot receive_once(int socket, ::msghdr& message, int flags, const Until& until) noexcept {
  io::Ring* ring = io::Ring::here();
  if (ring == nullptr) return {};
  io_uring_sqe request{};
  request.opcode = IORING_OP_RECVMSG;
  request.fd = socket;
  request.addr = reinterpret_cast<std::uintptr_t>(&message);
  request.len = 1;
  request.msg_flags = static_cast<std::uint32_t>(flags & ~MSG_DONTWAIT);
  OneShot ended;
  ended.end = ring->perform({&request, 1}, {&ended.value, 1}, WaitReason::readable, until);
  return ended;
}

OneShot poll_once(std::span<::pollfd> polled, const Until& until) noexcept {
  std::array<io_uring_sqe, io::Ring::kMostTogether> requests;
  std::array<int, io::Ring::kMostTogether> results{};
  std::size_t count = 0;
  bool reads = false;
  for (const ::pollfd& one : polled) {
    if (one.fd < 0) continue;
    if (count == requests.size() || !can_poll(one.events)) return {};
    io_uring_sqe& request = requests[count++];
    request = {};
    request.opcode = IORING_OP_POLL_ADD;
    request.fd = one.fd;
    request.poll32_events = static_cast<std::uint16_t>(one.events);
    reads = reads || (one.events & (POLLIN | POLLOUT)) != POLLOUT;
  }
  io::Ring* ring = count == 0 ? nullptr : io::Ring::here();
  if (ring == nullptr) return {};
  OneShot ended;
  ended.end = ring->perform(std::span(requests).first(count), std::span(results).first(count),
                            reads ? WaitReason::readable : WaitReason::writable, until);
  if (ended.end != OneShotEnd::done) return ended;
  const int* result = results.data();
  for (::pollfd& one : polled) {
    one.revents = 0;
    if (one.fd < 0) continue;
    const int came = *result++;
    if (came == -ECANCELED) continue;
    if (came < 0) return {};
    // POLLRDHUP also ends each request.
    one.revents = static_cast<short>(came & (one.events | kAlways));
    if (one.revents != 0) ++ended.value;
  }
  if (ended.value == 0) return {};
  return ended;
}

#else

OneShot receive_once(int, ::msghdr&, int, const Until&) noexcept { return {}; }
OneShot poll_once(std::span<::pollfd>, const Until&) noexcept { return {}; }

#endif

}  // namespace weft::detail
