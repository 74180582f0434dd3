// Shortens the messages of compilers about a callable of the wrong form.
#pragma once

namespace weft::detail {

// False for every callable. A function that takes callables of one form has one more overload for
// all other callables, which asserts this constant. Only that overload then fits, so the compiler
// prints its message and the callable's type, but does not explain why other overloads do not fit.
template <class Callable>
inline constexpr bool kFits = false;

// The last parameter of each such overload, which makes the parameter list unique. Clang 14 hides
// functions of a using-declaration with equal parameters, even if constraints differ.
struct Unlike {};

}  // namespace weft::detail
