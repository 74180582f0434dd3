// Implements the switch with Boost.Context, which supports every architecture; see context.hpp.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

namespace weft::fibers {

using Context = boost::context::detail::fcontext_t;
using Arrival = boost::context::detail::transfer_t;

[[nodiscard]] inline Context make_context(void* top, std::size_t size,
                                          void (*entry)(Arrival)) noexcept {
  return boost::context::detail::make_fcontext(top, size, entry);
}

inline Arrival jump(Context to, void* message) noexcept {
  return boost::context::detail::jump_fcontext(to, message);
}

// Empty, because Boost saves the registers in its own frame.
struct SavedContext {};
inline Arrival jump(Context to, void* message, SavedContext& /*saved*/) noexcept {
  return jump(to, message);
}

inline Arrival jump_on_top(Context to, void* message, Arrival (*visitor)(Arrival)) noexcept {
  return boost::context::detail::ontop_fcontext(to, message, visitor);
}

[[nodiscard]] inline const char* end_of(Context saved) noexcept {
  return static_cast<const char*>(saved);
}

}  // namespace weft::fibers
