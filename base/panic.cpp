#include "base/panic.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <weft/detail/atomic.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/invariant.hpp>

namespace weft::base {

namespace {

// Order
//   [hook]  set_panic_hook exchanges (acq_rel) -> panic exchanges (acq_rel): the hook's code is
//           ready, and a panic inside the hook finds no hook.
detail::Atomic<PanicHook> panic_hook{nullptr};

}  // namespace

PanicHook set_panic_hook(PanicHook hook) noexcept {
  return panic_hook.exchange(hook, detail::acq_rel);  // [hook]
}

void panic(const char* sentence, const char* file, int line) noexcept {
  char text[512];
  const int length = std::snprintf(text, sizeof text, "weft: %s (%s:%d)\n", sentence, file, line);
  if (length > 0) {
    const auto bytes = static_cast<std::size_t>(length);
    // If stderr cannot be written, the report is lost.
    (void)!::write(STDERR_FILENO, text, bytes < sizeof text ? bytes : sizeof text - 1);
  }
  if (auto* hook = panic_hook.exchange(nullptr, detail::acq_rel)) hook();  // [hook]
  std::abort();
}

}  // namespace weft::base

namespace weft::detail {

#ifdef WEFT_INVARIANTS
void invariant_broken(const char* sentence, const char* file, int line) noexcept {
  char text[384];
  (void)std::snprintf(text, sizeof text, "an invariant of weft is broken: %s", sentence);
  base::panic(text, file, line);
}
#endif

void end_with_thread() noexcept {
  base::panic("the thread of a worker ended: a fiber called pthread_exit, or it was cancelled",
              __FILE__, __LINE__);
}

}  // namespace weft::detail
