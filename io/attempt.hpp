// Attempts of a system call, with waits between them.
#pragma once

#include <signal.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <weft/detail/turn.hpp>
#include <weft/detail/waist.hpp>
#include <weft/error.hpp>
#include <weft/result.hpp>
#include <weft/until.hpp>

#include "base/thread.hpp"
#include "io/poller.hpp"

namespace weft::io {

// The result of a system call: a value, or with error != 0 the errno of that moment.
struct CallResult {
  std::int64_t value = 0;
  int error = 0;

  [[nodiscard]] bool would_wait() const noexcept { return error == EAGAIN; }
  [[nodiscard]] std::error_code code() const noexcept { return {error, std::system_category()}; }
};

// Repeats `call` while a signal interrupts it, and reads errno before other code can run. The
// caller must never be inlined: a compiler may keep the address of errno, and the caller may be on
// another thread after a wait.
template <class Call>
CallResult result_of(Call call) noexcept {
  for (;;) {
    const auto value = call();
    if (value >= 0) return {static_cast<std::int64_t>(value), 0};
    const int error = base::last_error();
    if (error != EINTR) return {0, error};
  }
}

// Opens a pipe whose ends do not wait: a reader of ends[0] gets what is written to ends[1].
[[nodiscard]] CallResult open_pipe(std::array<int, 2>& ends) noexcept;

// Suppresses SIGPIPE for system calls that cannot do so themselves: without a reader the system
// sends the signal and returns the error. The signal goes to the writing thread, where this class
// blocks it and removes it. Use it in a scope without a switch.
class NoPipeSignal {
 public:
  NoPipeSignal() noexcept;
  ~NoPipeSignal();
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  // Records and returns the result of the call; call it within the scope.
  CallResult note(CallResult result) noexcept;

 private:
  sigset_t before_;
  bool was_pending_ = false;
};

// Returns which of poll()'s `events` hold now. After an error or a hang-up, when no call waits, or
// if poll() fails, it returns all of them.
[[nodiscard]] short ready_now(int descriptor, short events) noexcept;
// Returns whether a read (or an accept), or a write, would not have to wait now.
[[nodiscard]] bool is_readable(int descriptor) noexcept;
[[nodiscard]] bool is_writable(int descriptor) noexcept;
[[nodiscard]] CallResult set_non_blocking(int descriptor) noexcept;
void close_descriptor(int descriptor) noexcept;

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

// Repeats `attempt`, a function that returns a CallResult, until it no longer has to wait. If
// `worth_trying` is false, it waits first. If `until` has passed already, it makes one attempt
// anyway, because the edge may be pending. A call that need not wait succeeds. The caller has
// entered the handle.
template <class Attempt>
Result<std::int64_t> attempt_until(io::IoDirection& direction, detail::WaitReason reason,
                                   const Until& until, bool worth_trying,
                                   Attempt attempt) noexcept {
  // The stream's own deadline also ends calls that need not wait.
  if (direction.deadline().passed()) return {.error = Errc::timed_out};
  for (std::error_code ended;; worth_trying = true) {
    if (worth_trying) {
      const CallResult result = attempt();
      if (!result.would_wait()) {
        detail::give_way_if_due();
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

}  // namespace weft::io
