// Calls that the kernel makes for a parked fiber, by io_uring requests.
#pragma once

#include <cstdint>
#include <span>
#include <weft/until.hpp>

struct msghdr;
struct pollfd;

namespace weft::detail {

// How such a call has ended. `refused`: it was not made, as there is no io_uring here.
enum class OneShotEnd : std::uint8_t { refused, done, timed_out, stopped };

struct OneShot {
  OneShotEnd end = OneShotEnd::refused;
  int value = 0;  // With `done`: the call's result, or an errno below 0.
};

// The request holds the file itself. So it behaves as a thread in the call does if the descriptor
// is closed or reused, or if other callers use the file. It ignores O_NONBLOCK, SO_RCVTIMEO and
// MSG_DONTWAIT. Once a call returns, the kernel does not touch the buffers any more.
// Context: fibers that keep their thread, as by this_fiber::Pin; parks.

// Does the same as recvmsg().
[[nodiscard]] OneShot receive_once(int socket, ::msghdr& message, int flags,
                                   const Until& until) noexcept;
// Does the same as poll(), by a request for each descriptor. A call is refused without descriptors
// or with more than eight, for urgent data or priority bands, and if a descriptor is not open. It
// is also refused if only POLLRDHUP came and was not requested. The value is poll()'s result.
[[nodiscard]] OneShot poll_once(std::span<::pollfd> polled, const Until& until) noexcept;

// Whether calls that begin from now on may use io_uring; initially true. Tests forbid it by this
// call.
void allow_one_shots(bool allowed) noexcept;

}  // namespace weft::detail
