// Shortens compiler messages about a callable of the wrong form.
#pragma once

namespace weft::detail {

// False for every callable. A function that takes a callable has an extra overload for callables of
// the wrong form. Its static_assert of this constant fails with a short message. Without it, the
// compiler would list every overload that does not fit.
template <class Callable>
inline constexpr bool kFits = false;

// The type of the last parameter of overloads that assert kFits. With the same parameter types, a
// member would hide the overload of a using-declaration in Clang 14, whatever their constraints.
struct Unlike {};

}  // namespace weft::detail
