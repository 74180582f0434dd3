// Trying a system call, waiting, and trying again.
#pragma once

#include <cstdint>
#include <system_error>
#include <weft/detail/waist.hpp>
#include <weft/error.hpp>
#include <weft/net/result.hpp>
#include <weft/net/socket.hpp>
#include <weft/until.hpp>

#include "io/poller.hpp"
#include "net/system_calls.hpp"

namespace weft::net {

// Registers a new descriptor with the poller; closes it if that fails.
Result<Socket> adopt(io::Poller& poller, int descriptor) noexcept;

// The caller's poller, or Errc::no_runtime.
Result<io::Poller*> find_poller();

[[nodiscard]] inline std::error_code to_error(io::WaitOutcome outcome) noexcept {
  switch (outcome) {
    case io::WaitOutcome::ready:
      return {};
    case io::WaitOutcome::timed_out:
      return Errc::timed_out;
    case io::WaitOutcome::stopped:
      return Errc::cancelled;
    case io::WaitOutcome::closed:
      return Errc::closed;
  }
  return {};
}

// Repeats `attempt`, a function that returns a CallResult, until it no longer asks to wait. If
// `worth_trying` is false it waits first; but if that wait is not to last, there is one attempt all
// the same: the edge may be on its way, and a call that need not wait succeeds. The caller has
// entered the handle.
template <class Attempt>
Result<std::int64_t> attempt_until(io::IoDirection& direction, detail::WaitReason reason,
                                   const Until& until, bool worth_trying,
                                   Attempt attempt) noexcept {
  // The stream's own deadline also ends calls that would not have to wait.
  if (direction.deadline().passed()) return {.error = Errc::timed_out};
  for (std::error_code ended;; worth_trying = true) {
    if (worth_trying) {
      const CallResult result = attempt();
      if (!result.would_wait()) {
        if (direction.turn_is_over()) [[unlikely]]
          detail::yield();
        if (result.error != 0) return {.error = result.code()};
        return {.value = result.value};
      }
    }
    if (ended) return {.error = ended};
    const io::WaitOutcome outcome = direction.wait(until, reason);
    if (outcome == io::WaitOutcome::ready) continue;
    ended = to_error(outcome);
    if (worth_trying || outcome == io::WaitOutcome::closed || direction.deadline().passed()) {
      return {.error = ended};
    }
  }
}

}  // namespace weft::net
