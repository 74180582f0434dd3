// Shortens compiler messages about a callable of the wrong form.
#pragma once

namespace weft::detail {

// False for every callable. A function that takes a callable has an extra overload for callables of
// the wrong form. That overload fails in static_assert(kFits<...>), with a short message. Without
// it, the compiler would list every other overload that does not fit.
template <class Callable>
inline constexpr bool kFits = false;

// The last parameter's type in WrongPoolCalls and WrongGroupCalls. Without this parameter, Clang 14
// would let a derived class's members hide the overload, even if the constraints differ.
struct Unlike {};

}  // namespace weft::detail
