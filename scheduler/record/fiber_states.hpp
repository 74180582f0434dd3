// The transitions of a fiber's state.
#pragma once

#include <cstdint>
#include <weft/detail/waist.hpp>

#include "fibers/fiber.hpp"

namespace weft::scheduler {

// The owner of the fiber calls these functions. Relaxed: a queue or a wake passes the fiber to its
// next owner, and this transfer also publishes the fiber's state. Dumps may read a stale state.

inline void become_ready(fibers::Fiber& fiber) noexcept {
  fiber.state.store(fibers::FiberState::ready, detail::relaxed);
}

inline void become_running(fibers::Fiber& fiber) noexcept {
  fiber.state.store(fibers::FiberState::running, detail::relaxed);
}

inline void set_wait_reason(fibers::Fiber& fiber, detail::WaitReason reason) noexcept {
  fiber.wait_reason.store(static_cast<std::uint8_t>(reason), detail::relaxed);
}

inline void become_parked(fibers::Fiber& fiber, detail::WaitReason reason) noexcept {
  set_wait_reason(fiber, reason);
  fiber.state.store(fibers::FiberState::parked, detail::relaxed);
}

// The fiber waits while its inlined child runs on the stack that they share.
inline void become_inlining(fibers::Fiber& fiber, detail::WaitReason reason) noexcept {
  set_wait_reason(fiber, reason);
  fiber.state.store(fibers::FiberState::inlining, detail::relaxed);
}

inline void become_free(fibers::Fiber& fiber) noexcept {
  fiber.stack.store(nullptr, detail::relaxed);
  fiber.state.store(fibers::FiberState::free, detail::relaxed);
}

}  // namespace weft::scheduler
