#include "scheduler/stack_shortage.hpp"

#include <cstdio>
#include <cstring>
#include <weft/deadline.hpp>

#include "base/memory_limits.hpp"
#include "scheduler/exit_watch.hpp"
#include "scheduler/scheduler.hpp"

namespace weft::scheduler {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kPatience = 5 * kSecond;
constexpr std::int64_t kBetweenLines = 10 * kSecond;

}  // namespace

bool StackShortage::note(std::size_t stack_bytes) noexcept {
  // Fibers that have stacks, and will give them back, may stand behind very many that have none.
  constexpr std::uint32_t kNotesBeforePause = 16;
  const bool pause = notes_.fetch_add(1, detail::relaxed) % kNotesBeforePause == 0;
  if (pause) look(stack_bytes);
  return pause;
}

void StackShortage::look(std::size_t stack_bytes) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  const std::int64_t now = Deadline::now_nanoseconds();
  std::uint64_t switches = 0;
  for (const auto& worker : scheduler_.workers()) switches += worker->counters().switches.get();
  // A shortage after a second without one is a new one.
  if (switches != switches_ || now - last_note_ > kSecond) {
    switches_ = switches;
    still_since_ = now;
  }
  last_note_ = now;
  if (now >= next_line_) write_line(stack_bytes, now);
  if (now - still_since_ < kPatience || others_may_end()) return;
  still_since_ = now;
  const auto& report = scheduler_.options().on_deadlock;
  if (!report) return;
  const ExitWatch::Pause pause;
  report(scheduler_);
}

void StackShortage::write_line(std::size_t stack_bytes, std::int64_t now) noexcept {
  next_line_ = now + kBetweenLines;
  char limit[128];
  base::name_memory_limit(limit, sizeof limit);
  (void)std::fprintf(stderr,
                     "weft: no stack of %zu KiB to be had: %llu are set up, and the system refuses "
                     "more (%s); new fibers wait until others end\n",
                     stack_bytes >> 10,
                     static_cast<unsigned long long>(scheduler_.stacks().space().counts().carved),
                     limit);
}

// Whether one that has a stack runs, or will be woken by the clock, the kernel or a helper thread.
bool StackShortage::others_may_end() noexcept {
  for (const auto& worker : scheduler_.workers()) {
    if (!worker->next_timer_hint().is_never()) return true;
  }
  bool may = false;
  const bool listed =
      scheduler_.fibers().for_each_until(Deadline::past(), [&](const fibers::Fiber& fiber) {
        // Relaxed: no fiber has run for a while, so nothing of this is written meanwhile.
        switch (fiber.state.load(detail::relaxed)) {
          case fibers::FiberState::free:
            break;
          case fibers::FiberState::running:
            may = true;
            break;
          case fibers::FiberState::ready:
            may = fiber.stack.load(detail::relaxed) != nullptr;
            break;
          case fibers::FiberState::parked:
          case fibers::FiberState::inlining:
            may = !ends_from_inside(
                static_cast<detail::WaitReason>(fiber.wait_reason.load(detail::relaxed)));
            break;
        }
        return !may;
      });
  return may || !listed;
}

}  // namespace weft::scheduler
