// Stands in for fibers/fiber.hpp: what switches and gates know of a fiber.
#pragma once

#include <cstdint>
#include <ostream>
#include <weft/detail/atomic.hpp>

#include "fibers/stack.hpp"

namespace weft::fibers {

enum class FiberState : std::uint8_t { free, ready, running, parked, inlining };
// For the checker's histories.
inline std::ostream& operator<<(std::ostream& out, FiberState state) {
  return out << static_cast<int>(state);
}

struct Fiber {
  detail::Atomic<Stack*> stack{nullptr};
  detail::Atomic<FiberState> state{FiberState::free};
};

}  // namespace weft::fibers
