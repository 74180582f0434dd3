// Gives compilers a short message for a callable of a wrong form.
#pragma once

namespace weft::detail {

// False for every callable. A function that takes callables of one form has a last overload, for
// all other callables, that asserts this constant. Only the last overload then fits, so the
// compiler prints only its message and the callable's type, not why other overloads do not fit.
template <class Callable>
inline constexpr bool kFits = false;

// The last parameter of each such overload makes its parameter list unique: clang 14 hides
// functions of a using-declaration with equal parameters, even if constraints differ.
struct Unlike {};

}  // namespace weft::detail
