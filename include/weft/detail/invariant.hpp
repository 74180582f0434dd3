// Checks invariants in debug and sanitizer builds, and in builds with the option `shake`.
#pragma once

#if defined(WEFT_INVARIANTS) && !defined(WEFT_MODEL)

namespace weft::detail {

// Writes `sentence`, `file`, `line` and a dump of the fibers to stderr, then aborts. Any thread may
// call this function, whichever locks it holds.
[[noreturn]] void invariant_broken(const char* sentence, const char* file, int line) noexcept;

}  // namespace weft::detail

// Checks an invariant. `sentence` states the invariant after its class and number, as in "Mutex I2:
// ...". Only debug and sanitizer builds and builds with the option `shake` evaluate the condition,
// so the condition must have no side effects. The condition may read only what the caller may read
// at that point, and must take no lock.
#define WEFT_INVARIANT(condition, sentence)          \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::weft::detail::invariant_broken(sentence, __FILE__, __LINE__))

#else

// The condition is compiled, so that it remains valid code, but never evaluated. Model-checking
// builds do not evaluate it either, because each additional atomic load would multiply the states
// to explore.
#define WEFT_INVARIANT(condition, sentence) static_cast<void>(sizeof(static_cast<bool>(condition)))

#endif
