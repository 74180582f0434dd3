// Shortens compiler messages about a callable of the wrong form.
#pragma once

namespace weft::detail {

// False for every callable. A function that takes a callable has an extra overload for callables of
// the wrong form. Its static_assert of this constant fails with a short message. Without that
// overload, the compiler would list every other overload that does not fit.
template <class Callable>
inline constexpr bool kFits = false;

// The type of the last parameter of overloads that assert kFits. Without this parameter, members of
// the derived class would hide these overloads in Clang 14, even if their constraints differ.
struct Unlike {};

}  // namespace weft::detail
