// Invariants as code: debug builds check them, other builds do not.
#pragma once

#if defined(WEFT_INVARIANTS) && !defined(WEFT_MODEL)

namespace weft::detail {

// Writes the sentence, its place and the fiber dump to stderr, and aborts. Any thread may call it,
// with any lock held.
[[noreturn]] void invariant_broken(const char* sentence, const char* file, int line) noexcept;

}  // namespace weft::detail

// `sentence` begins with the class and the number of the invariant, "Mutex I2: ...", and states
// what holds. The condition is evaluated in debug, sanitizer and shaken builds only, so it must
// change nothing. It reads only what the caller may read at that place, and takes no lock.
#define WEFT_INVARIANT(condition, sentence)          \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::weft::detail::invariant_broken(sentence, __FILE__, __LINE__))

#else

// The condition is compiled, so that it stays valid, but never evaluated. Models check their own
// properties: each additional load of an atomic would multiply the states to explore.
#define WEFT_INVARIANT(condition, sentence) static_cast<void>(sizeof(static_cast<bool>(condition)))

#endif
