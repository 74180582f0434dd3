// Short messages for callables of a wrong form.
#pragma once

namespace weft::detail {

// False for every callable. A function that takes callables of one form has a last overload, for
// all other callables, that asserts this constant. Only that overload then fits, so the compiler
// prints its message and the callable's type, not the reasons why the other overloads do not fit.
template <class Callable>
inline constexpr bool kFits = false;

// The last parameter of each such overload of a class. It distinguishes the overload: clang 14
// hides functions of a using-declaration with equal parameters, even if the constraints differ.
struct Unlike {};

}  // namespace weft::detail
