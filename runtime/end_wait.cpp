#include <weft/detail/end_wait.hpp>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <weft/detail/atomic.hpp>
#include <weft/detail/simulated.hpp>
#include <weft/this_fiber.hpp>

#include "base/printable.hpp"
#include "runtime/dump.hpp"

namespace weft::detail {

namespace {

// Allows one report each tenth of a second, for the whole process: many destructors may wait at
// once.
bool may_report() noexcept {
  constexpr std::int64_t kPeriod = 100'000'000;
  constexpr std::int64_t kBurst = 16;
  static Atomic<std::int64_t> booked{0};
  const std::int64_t now = Deadline::now_nanoseconds();
  std::int64_t until = booked.load(relaxed);
  // Relaxed: only the number of reports depends on it.
  for (;;) {
    const std::int64_t next = (until < now ? now : until) + kPeriod;
    if (next > now + kBurst * kPeriod) return false;
    if (booked.compare_exchange_weak(until, next, relaxed, relaxed)) return true;
  }
}

}  // namespace

Deadline end_wait_report_time() noexcept {
  return is_simulated() ? Deadline::never() : Deadline::after(std::chrono::seconds(5));
}

void report_end_wait(const char* what, const void* target) noexcept {
  if (!may_report()) return;
  char heading[256];
  char caller[96] = "a plain thread";
  if (this_fiber::is_fiber()) {
    const std::string_view name = this_fiber::name();
    (void)std::snprintf(caller, sizeof caller, "fiber %llu '%.*s'",
                        static_cast<unsigned long long>(this_fiber::id()),
                        static_cast<int>(name.size()), name.data());
  }
  (void)std::snprintf(heading, sizeof heading,
                      "weft: %s, by %s, has waited for 5 s for fibers among these; let them end\n",
                      what, caller);
  base::make_printable({heading, std::strlen(heading) - 1});  // Without the newline.
  try {
    runtime::write_to_stderr(heading + runtime::dump_targeted(target, runtime::report_patience()));
  } catch (const std::exception&) {
    runtime::write_to_stderr(heading);  // Memory or a thread for the list is missing.
  }
}

}  // namespace weft::detail
