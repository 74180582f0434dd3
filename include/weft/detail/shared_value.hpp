// Stores a value that many callers copy, each under a lock that is held for a few instructions.
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace weft::detail {

// A copy under the lock must not allocate or throw. A small T whose copies and swaps do not throw
// is therefore stored directly, and any other T through a std::shared_ptr.
template <class T>
inline constexpr bool kCopiedInPlace =
    std::is_nothrow_copy_constructible_v<T>&& std::is_nothrow_copy_assignable_v<T>&&
        std::is_nothrow_swappable_v<T> &&
    sizeof(T) <= 64;

// Holds a T, or is empty. Copies and swaps of a SharedValue do not throw.
template <class T>
using SharedValue =
    std::conditional_t<kCopiedInPlace<T>, std::optional<T>, std::shared_ptr<const T>>;

// Throws what a move of T throws; also std::bad_alloc if kCopiedInPlace<T> is false.
template <class T>
[[nodiscard]] SharedValue<T> make_shared_value(T&& value) {
  if constexpr (kCopiedInPlace<T>) {
    return SharedValue<T>(std::in_place, std::move(value));
  } else {
    return std::make_shared<const T>(std::move(value));
  }
}

}  // namespace weft::detail
