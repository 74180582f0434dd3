// Access to the thread sanitizer, which finds data races between the fibers of a world in a build
// with -Dno_sync=true. Only primitives order fibers there, and switches do not. The simulation's
// one thread orders the simulation's own state, so the sanitizer ignores this library.
#pragma once

#include <cstdint>
#include <string_view>

#ifdef WEFT_TSAN_NO_SYNC
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace weft::sim {

// The reason for the failure of a run in which the sanitizer has reported a data race.
inline constexpr std::string_view kRaceFound =
    "the thread sanitizer has reported a data race; see its report above";

// Counts a report. The sanitizer's callback calls it for each report.
void count_race_report() noexcept;
// Returns the number of reports in this process; 0 in builds without the sanitizer.
[[nodiscard]] std::uint64_t race_reports() noexcept;

// The sanitizer ignores what the calling fiber does until end_unwatched(), including calls to the C
// library and to templates that other code shares.
inline void begin_unwatched() noexcept {
#ifdef WEFT_TSAN_NO_SYNC
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
}
inline void end_unwatched() noexcept {
#ifdef WEFT_TSAN_NO_SYNC
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
}

// Everything before `sends` happens before everything after `receives`, as between a write and a
// read of one real socket.
inline void sends([[maybe_unused]] void* way) noexcept {
#ifdef WEFT_TSAN_NO_SYNC
  __tsan_release(way);
#endif
}
inline void receives([[maybe_unused]] void* way) noexcept {
#ifdef WEFT_TSAN_NO_SYNC
  __tsan_acquire(way);
#endif
}

}  // namespace weft::sim
