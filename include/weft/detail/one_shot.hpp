// Calls that the kernel makes for a parked fiber, by one io_uring request each.
#pragma once

#include <cstdint>
#include <weft/until.hpp>

struct msghdr;

namespace weft::detail {

// How such a call has ended. `refused`: it was not made, as there is no io_uring here.
enum class OneShotEnd : std::uint8_t { refused, done, timed_out, stopped };

struct OneShot {
  OneShotEnd end = OneShotEnd::refused;
  int value = 0;  // With `done`: the call's result, or an errno below 0.
};

// The request holds the file itself: closing the number or giving it to another file, other callers
// and both directions mean what they mean for a thread in the call. It ignores O_NONBLOCK,
// SO_RCVTIMEO and MSG_DONTWAIT. Once a call returns, the kernel does not touch the buffers any
// more.
// Context: fibers that keep their thread, as by this_fiber::Pin; parks.

// Does the same as recvmsg().
[[nodiscard]] OneShot receive_once(int socket, ::msghdr& message, int flags,
                                   const Until& until) noexcept;
// Waits for `events` of poll(); the value is what poll() would leave in revents. It is also refused
// for urgent data and priority bands, and if only POLLRDHUP came and was not requested.
[[nodiscard]] OneShot poll_once(int descriptor, short events, const Until& until) noexcept;

// Whether calls that begin from now on may use io_uring; initially true. For tests of what happens
// without it.
void allow_one_shots(bool allowed) noexcept;

}  // namespace weft::detail
