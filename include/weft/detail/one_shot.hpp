// Lets the kernel make system calls for a parked fiber, through io_uring requests.
#pragma once

#include <cstdint>
#include <span>
#include <weft/until.hpp>

struct msghdr;
struct pollfd;

namespace weft::detail {

// Reports how a call ended. `refused`: the call has no result, for example for lack of io_uring.
enum class OneShotEnd : std::uint8_t { refused, done, timed_out, stopped };

struct OneShot {
  OneShotEnd end = OneShotEnd::refused;
  int value = 0;  // With `done`: the call's result, or a negative errno.
};

// The io_uring request keeps the file open, and is unaffected if the descriptor is closed or
// reused. It competes with other callers that receive from the file. Requests ignore O_NONBLOCK,
// SO_RCVTIMEO and MSG_DONTWAIT. Once a call returns, the kernel no longer uses the buffers.
// Context: fibers that stay on their thread, for example through this_fiber::Pin; parks.

// Receives a message, as recvmsg() does.
[[nodiscard]] OneShot receive_once(int socket, ::msghdr& message, int flags,
                                   const Until& until) noexcept;
// Waits as poll() does, with one io_uring request per descriptor. Returns `refused` if `polled` has
// no descriptor, a closed one or more than eight, or requests urgent data or priority bands; also
// if only a POLLRDHUP that was not requested ends the wait. `value` is poll()'s result.
[[nodiscard]] OneShot poll_once(std::span<::pollfd> polled, const Until& until) noexcept;

// Sets whether later calls may use io_uring; by default they may. Tests forbid it.
void allow_one_shots(bool allowed) noexcept;

}  // namespace weft::detail
