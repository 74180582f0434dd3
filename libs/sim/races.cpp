#include "libs/sim/races.hpp"

#include <weft/detail/atomic.hpp>

namespace weft::sim {

namespace {

// Relaxed: the worker only checks whether the count has grown.
constinit detail::Atomic<std::uint64_t> reports{0};

}  // namespace

std::uint64_t race_reports() noexcept { return reports.load(detail::relaxed); }

void count_race_report() noexcept { reports.fetch_add(1, detail::relaxed); }

}  // namespace weft::sim

#if defined(WEFT_TSAN_NO_SYNC)
#define WEFT_SIM_COUNTS_RACES
#elif defined(__SANITIZE_THREAD__)
#define WEFT_SIM_COUNTS_RACES
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_SIM_COUNTS_RACES
#endif
#endif

#ifdef WEFT_SIM_COUNTS_RACES
// The sanitizer calls this function after each report, perhaps with a lock held. It is not weak,
// because the sanitizer's own definition is weak and linked first. So a program with weft-sim
// cannot define it.
extern "C" void __tsan_on_report(void*);
extern "C" void __tsan_on_report(void*) { weft::sim::count_race_report(); }
#endif
