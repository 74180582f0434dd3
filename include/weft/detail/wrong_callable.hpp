// Short messages for callables of a wrong form.
#pragma once

namespace weft::detail {

// False for each callable. A function that takes callables of one form has a last overload for all
// others, which asserts this. The overload is then the only one that fits, so the compiler prints
// its sentence and the callable's type instead of the reasons why each other overload does not fit.
template <class Callable>
inline constexpr bool kFits = false;

// The last parameter of each such overload of a class: clang 14 hides what a using-declaration
// brings if the class has a function with the same parameters, whatever the constraints are.
struct Unlike {};

}  // namespace weft::detail
