// Lets the kernel make system calls for a parked fiber, through io_uring requests.
#pragma once

#include <cstdint>
#include <span>
#include <weft/until.hpp>

struct msghdr;
struct pollfd;

namespace weft::detail {

// Reports how a call ended. `refused`: the call was not made, for example for lack of io_uring.
enum class OneShotEnd : std::uint8_t { refused, done, timed_out, stopped };

struct OneShot {
  OneShotEnd end = OneShotEnd::refused;
  int value = 0;  // With `done`: the call's result, or a negative errno.
};

// The io_uring request keeps the file open, and is unaffected if the descriptor is closed or
// reused. It competes with other callers that use the file. Requests ignore O_NONBLOCK, SO_RCVTIMEO
// and MSG_DONTWAIT. Once a call returns, the kernel no longer uses the buffers.
// Context: fibers that stay on their thread, for example through this_fiber::Pin; parks.

// Receives a message, as recvmsg() does.
[[nodiscard]] OneShot receive_once(int socket, ::msghdr& message, int flags,
                                   const Until& until) noexcept;
// Waits as poll() does, with one request for each descriptor. Refuses a call with no or more than
// eight descriptors, with a closed one, or for urgent data or priority bands. Also refuses if only
// an unrequested POLLRDHUP arrived. OneShot::value is poll()'s result.
[[nodiscard]] OneShot poll_once(std::span<::pollfd> polled, const Until& until) noexcept;

// Sets whether calls that begin from now on may use io_uring; initially they may. Tests forbid
// this.
void allow_one_shots(bool allowed) noexcept;

}  // namespace weft::detail
