#include "scheduler/upkeep/memory_goal.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "scheduler/tuning.hpp"

namespace weft::scheduler {

using detail::relaxed;

namespace {

constexpr std::size_t kLooksAhead = 16;
// With a default goal, spawns are refused only if fibers hold at least an eighth of the goal. If
// each fiber holds one page (4 KiB), the fibers hold an eighth of the goal when there is one fiber
// per 32 KiB of the goal.
constexpr std::size_t kPartOfFibers = 8;

}  // namespace

bool MemoryGoal::look(std::int64_t now) noexcept {
  if (bytes_ == 0 || now < next_look_) return false;
  const std::size_t used = in_use_();
  const std::size_t before = std::exchange(last_use_, used);
  const std::size_t growth = used > before ? used - before : 0;
  is_close_ = used + std::min(growth, bytes_) * kLooksAhead >= bytes_ && growth != 0;
  next_look_ = now + (is_close_ ? tuning::kShortestSamplePeriod : tuning::kMemoryLook);
  if (used >= bytes_) {
    reach();
  } else if (used < bytes_ - bytes_ / 16) {
    reached_.store(0, relaxed);
  }
  if (times() != 0 && !std::exchange(is_told_, true)) report(used);
  return used >= bytes_ - bytes_ / 8;
}

bool MemoryGoal::refuses(std::size_t of_fibers) const noexcept {
  return is_set_by_program_ || of_fibers >= bytes_ / kPartOfFibers;
}

void MemoryGoal::judge(std::size_t of_fibers) noexcept {
  refusing_.store(is_reached() && refuses(of_fibers) ? 1 : 0, relaxed);
}

// The monitor writes the report, because the caller may hold locks and may have little stack.
bool MemoryGoal::may_grow(std::size_t of_fibers) noexcept {
  if (in_use_() < bytes_) return true;
  reach();
  if (!refuses(of_fibers)) return true;
  refusing_.store(1, relaxed);
  return false;
}

void MemoryGoal::reach() noexcept {
  if (reached_.exchange(1, relaxed) == 0) times_.fetch_add(1, relaxed);
}

void MemoryGoal::report(std::size_t used) noexcept {
  const char* const effect =
      is_set_by_program_
          ? "new fibers are refused until it uses less. Raise the goal, or bound the fibers by "
            "a FiberPool"
          : "unused stacks and records are given back, and new fibers are refused while fibers "
            "hold an eighth of it or more. Set the option to a number of bytes to have them "
            "always refused there, or bound the fibers by a FiberPool";
  (void)std::fprintf(
      stderr, "weft: RuntimeOptions::memory_goal = %zu bytes, and the process uses %zu: %s\n",
      bytes_, used, effect);
}

}  // namespace weft::scheduler
