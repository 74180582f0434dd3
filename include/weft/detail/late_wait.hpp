// Reports waits that continue after the end of the caller's context.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <weft/detail/context_node.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/detail/waist.hpp>

namespace weft::detail {

// Observes a wait that the caller's context cannot end, in a call such as receive(), send(),
// acquire(), wait() or lock(). The LateWait writes a line to stderr if the context has already
// ended or ends during the wait. A process writes at most one line for each WaitReason.
// Context: callers that hold no lock.
class LateWait {
 public:
  explicit LateWait(WaitReason reason) noexcept;
  LateWait(const LateWait&) = delete;
  LateWait& operator=(const LateWait&) = delete;

 private:
  struct Caller {
    WaitReason reason;
    std::uint64_t id;
    std::array<char, 64> name;  // A copy, because the thread that ends the context reads it.
    void operator()() const noexcept;
  };

  StopRegistration<Caller> registration_;
};

}  // namespace weft::detail

// In programs with assertions, these macros create a LateWait, which exists until the end of the
// scope. Evaluating `polls` must not wait; if `polls` is true, the enclosing function returns. A
// caller that holds a lock uses the second macro, which temporarily releases the lock, so the
// caller must check the guarded state again.
#if (!defined(NDEBUG) || defined(WEFT_INVARIANTS)) && !defined(WEFT_MODEL)
#define WEFT_TELLS_LATE_WAITS
#define WEFT_TELL_LATE_WAIT(reason, polls)                 \
  std::optional<::weft::detail::LateWait> late_wait;       \
  if (::weft::detail::ContextNode::current() != nullptr) { \
    if (polls) return;                                     \
    late_wait.emplace(::weft::detail::WaitReason::reason); \
  }                                                        \
  static_assert(true)
#define WEFT_TELL_LATE_WAIT_LOCKED(waits, held, reason)    \
  std::optional<::weft::detail::LateWait> late_wait;       \
  if (waits) {                                             \
    (held).unlock();                                       \
    late_wait.emplace(::weft::detail::WaitReason::reason); \
    (held).lock();                                         \
  }                                                        \
  static_assert(true)
#else
#define WEFT_TELL_LATE_WAIT(reason, polls) static_cast<void>(0)
#define WEFT_TELL_LATE_WAIT_LOCKED(waits, held, reason) static_cast<void>(0)
#endif
