// Messages about misused objects.
#pragma once

#include <cstdarg>
#include <cstdio>

namespace weft::sync {

// Returns a sentence for WEFT_CHECK, with the object's address as a debugger shows it, and the
// numbers that describe the misuse. Its buffer is never freed, because the process is about to end.
[[nodiscard, gnu::cold, gnu::noinline, gnu::format(printf, 2, 3)]] inline const char* of_object(
    const void* object, const char* format, ...) noexcept {
  static char sentence[320];
  const int start = std::snprintf(sentence, sizeof sentence, "at %p: ", object);
  if (start < 0) return format;
  std::va_list numbers;
  va_start(numbers, format);
  (void)std::vsnprintf(sentence + start, sizeof sentence - static_cast<std::size_t>(start), format,
                       numbers);
  va_end(numbers);
  return sentence;
}

}  // namespace weft::sync
