// A detour on the way back to a parked stack, at which whoever comes can be made to wait. While
// nobody has hung one, a switch knows nothing of it: a gate is a saved context like any other,
// whose place to go on at is a few instructions that pass through it. For our own switch only.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

#include "fibers/context.hpp"

namespace weft::fibers {

#ifdef WEFT_CONTEXT_BOOST

inline constexpr bool kHasGates = false;

struct Gate {
  void lead_to(Context /*way_on*/, char* /*lobby*/) noexcept {}
  [[nodiscard]] Context entrance() noexcept { return nullptr; }
  [[nodiscard]] Context way_on() const noexcept { return nullptr; }
  [[nodiscard]] bool try_close() noexcept { return false; }
  void open() noexcept {}
};

[[nodiscard]] inline Context behind_gate(Context saved) noexcept { return saved; }

#else

inline constexpr bool kHasGates = true;

// A worker that passes through a gate waits there while it is closed, and then marks it as passed
// for good. Owner of all but `state_`: the thread that hangs it, until no worker can be on the way
// to it any more.
// Order
//   [gate]  open stores (release) -> a worker that passes through, in the assembly of gate.cpp, and
//           try_close take it (acquire): what was done to the stack is over. The thread that hangs
//           a gate, or takes it away, stores a context (release) -> a jump reads through that,
//           which orders it by dependency.
class Gate {
 public:
  // Hangs nowhere yet. Whoever passes through stands at `lobby`, the upper end of some memory,
  // until it has: a signal may come just then, and the stack that the way leads to is not to be
  // touched.
  void lead_to(Context way_on, char* lobby) noexcept;
  // For the `context` of a stack, instead of way_on().
  [[nodiscard]] Context entrance() noexcept { return &entrance_; }
  [[nodiscard]] Context way_on() const noexcept { return way_on_; }
  // From now on whoever comes waits. False when somebody has passed.
  [[nodiscard]] bool try_close() noexcept {
    std::uint32_t open = kOpen;
    // Relaxed on failure: nothing is done then.
    return state_.compare_exchange_strong(open, kClosed, detail::acquire,
                                          detail::relaxed);  // [gate]
  }
  void open() noexcept { state_.store(kOpen, detail::release); }  // [gate]
  // One try to pass, as the assembly makes it; for models.
  [[nodiscard]] bool try_pass() noexcept {
    std::uint32_t open = kOpen;
    return state_.compare_exchange_strong(open, kPassed, detail::acquire,
                                          detail::relaxed);  // [gate]
  }

 private:
  friend Context behind_gate(Context saved) noexcept;

  static constexpr std::uint32_t kPassed = 0;
  static constexpr std::uint32_t kOpen = 1;
  static constexpr std::uint32_t kClosed = 2;

  // The assembly knows the layout, and so does tools/gdb/weft.py.
  SavedContext entrance_{};
  Context way_on_ = nullptr;
  detail::Atomic<std::uint32_t> state_{kPassed};
};

// The context that `saved` leads to: the way on behind it if it is the entrance of a gate, else
// itself.
[[nodiscard]] Context behind_gate(Context saved) noexcept;

#endif

}  // namespace weft::fibers
