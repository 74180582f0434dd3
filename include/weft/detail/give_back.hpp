// Returns a refused callable to its owner.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace weft::detail {

// Moves a refused callable back to `owner` if the caller passed an rvalue; an lvalue was only
// copied. Does nothing if that move could throw, because an exception could lose the callable.
template <class F, class Callable>
void give_back(std::remove_reference_t<F>& owner, Callable& refused) noexcept {
  if constexpr (!std::is_reference_v<F> && std::is_same_v<F, Callable>) {
    if constexpr (std::is_nothrow_move_assignable_v<F>) {
      owner = std::move(refused);
    } else if constexpr (std::is_nothrow_move_constructible_v<F>) {
      std::destroy_at(&owner);  // A lambda cannot be assigned.
      std::construct_at(&owner, std::move(refused));
    }
  }
}

}  // namespace weft::detail
