// Invariants that run: they are checked in builds that look for errors, and in no others.
#pragma once

#if defined(WEFT_INVARIANTS) && !defined(WEFT_MODEL)

namespace weft::detail {

// Writes the sentence and its place to stderr, and the fiber dump, and aborts. From any thread,
// with any lock held.
[[noreturn]] void invariant_broken(const char* sentence, const char* file, int line) noexcept;

}  // namespace weft::detail

// `sentence` begins with the class and the number of the invariant, "Mutex I2: ...", and says what
// holds. The condition is evaluated in debug, sanitizer and shaken builds only, so it must change
// nothing. It reads only what the caller may read at that place, and takes no lock.
#define WEFT_INVARIANT(condition, sentence)          \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::weft::detail::invariant_broken(sentence, __FILE__, __LINE__))

#else

// Compiled, so that it does not go stale, and never evaluated. Models check properties of their
// own: each load of an atomic more would multiply what there is to explore.
#define WEFT_INVARIANT(condition, sentence) static_cast<void>(sizeof(static_cast<bool>(condition)))

#endif
