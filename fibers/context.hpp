// The bare switch between two stacks.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

namespace weft::fibers {

// Saved registers of whoever is not running; null when there are none.
using Context = boost::context::detail::fcontext_t;
// What arrives on the other side: the context that was left, and a pointer from it.
using Arrival = boost::context::detail::transfer_t;

// Prepares a stack that grows down from `top` to call `entry`, which never returns.
[[nodiscard]] inline Context make_context(void* top, std::size_t size,
                                          void (*entry)(Arrival)) noexcept {
  return boost::context::detail::make_fcontext(top, size, entry);
}

// Saves the caller's registers and resumes `to`. Returns when somebody resumes the caller,
// perhaps on another thread: nothing thread-local may be kept across it.
inline Arrival jump(Context to, void* message) noexcept {
  return boost::context::detail::jump_fcontext(to, message);
}

// As jump(), but calls `visitor` on the stack of `to` first, as if whoever is saved there had
// called it: what it returns, should it return, is what they get.
inline Arrival jump_on_top(Context to, void* message, Arrival (*visitor)(Arrival)) noexcept {
  return boost::context::detail::ontop_fcontext(to, message, visitor);
}

}  // namespace weft::fibers
