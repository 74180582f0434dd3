// Lets the kernel make system calls for a parked fiber, through io_uring requests.
#pragma once

#include <cstdint>
#include <span>
#include <weft/until.hpp>

struct msghdr;
struct pollfd;

namespace weft::detail {

// Reports how a call ended. `refused`: no call was made, for example because io_uring is missing.
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
// Waits as poll() does, with one request for each descriptor. Refuses the call if it has no
// descriptor or more than eight, if one is closed, or if it asks for urgent data or priority bands.
// Also refuses it if the wait ends only with an unrequested POLLRDHUP. `value` is poll()'s result.
[[nodiscard]] OneShot poll_once(std::span<::pollfd> polled, const Until& until) noexcept;

// Sets whether later calls may use io_uring; by default they may. Tests forbid it.
void allow_one_shots(bool allowed) noexcept;

}  // namespace weft::detail
