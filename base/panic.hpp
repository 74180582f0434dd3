// Ends a process in which the library has been misused.
#pragma once

namespace weft::base {

// Writes `weft: sentence` and the source location to stderr, then the fiber dump if a runtime has
// set a hook, and aborts. Any thread may call it, even with locks held, because the report uses
// only write(2).
[[noreturn]] void panic(const char* sentence, const char* file, int line) noexcept;

// panic() calls the hook once before it aborts. set_panic_hook() returns the previous hook.
using PanicHook = void (*)() noexcept;
PanicHook set_panic_hook(PanicHook hook) noexcept;

}  // namespace weft::base

// Every build contains the check. `sentence` states what the caller did wrong.
#define WEFT_CHECK(condition, sentence)              \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::weft::base::panic(sentence, __FILE__, __LINE__))
