// Returns a refused callable to its owner.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace weft::detail {

// Moves a refused callable back to `owner` if the caller passed an rvalue of the same type. Does
// nothing for an lvalue, which was copied, or if the move could throw and thus lose the callable.
template <class F, class Callable>
void give_back(std::remove_reference_t<F>& owner, Callable& refused) noexcept {
  if constexpr (!std::is_reference_v<F> && std::is_same_v<F, Callable>) {
    if constexpr (std::is_nothrow_move_assignable_v<F>) {
      owner = std::move(refused);
    } else if constexpr (std::is_nothrow_move_constructible_v<F>) {
      std::destroy_at(&owner);  // A lambda can be constructed, but not assigned.
      std::construct_at(&owner, std::move(refused));
    }
  }
}

}  // namespace weft::detail
