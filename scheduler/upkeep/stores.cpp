#include <algorithm>
#include <utility>

#include "scheduler/tuning.hpp"
#include "scheduler/upkeep/stores.hpp"

namespace weft::scheduler {

void Stores::trim() noexcept {
  while (trim_some()) {
  }
}

bool Stores::has_surplus_hint() const noexcept {
  return stacks_.has_surplus_hint() || fibers_.has_surplus_hint();
}

bool Stores::trim_some() noexcept {
  const bool more_stacks = stacks_.trim(tuning::kTrimmedStackChains);
  const bool more_fibers = fibers_.trim(tuning::kTrimmedFiberChains);
  return more_stacks || more_fibers;
}

bool Stores::decay_some(std::int64_t now) noexcept {
  // If another thread is freeing memory, the caller does not wait for it.
  if (!decay_lock_.try_lock()) return false;
  const std::int64_t since = std::min(now - std::exchange(last_decay_, now), tuning::kDecayPeriod);
  if (now - decay_period_began_ >= tuning::kDecayPeriod) {
    decay_period_began_ = now;
    stacks_.begin_decay_period();
    fibers_.begin_decay_period();
    stacks_due_ = stacks_.due();
    fibers_due_ = fibers_.due();
  }
  // Each call frees some of the chains that are due in this period, in proportion to the time since
  // the previous call.
  const auto share = [since](std::int64_t due, unsigned least, std::int64_t most) {
    return static_cast<unsigned>(
        std::clamp<std::int64_t>(due * since / tuning::kDecayPeriod, least, most));
  };
  const bool more_stacks =
      stacks_.decay(share(stacks_due_, tuning::kTrimmedStackChains, tuning::kMostStackChains));
  const bool more_fibers =
      fibers_.decay(share(fibers_due_, tuning::kTrimmedFiberChains, tuning::kMostFiberChains));
  decay_lock_.unlock();
  return more_stacks || more_fibers;
}

std::size_t Stores::least_bytes(std::size_t records) noexcept {
  constexpr std::size_t kPage = 4096;
  const auto counts = stacks_.space().counts();
  return records + (counts.carved - counts.cold) * kPage;
}

bool Stores::mind_goal(std::int64_t now) noexcept {
  constexpr int kSteps = 16;  // 16 steps take a few milliseconds; the next call frees more.
  const bool is_near = goal_.look(now);
  if (goal_.is_reached() || goal_.is_refusing()) goal_.judge(least_bytes(fibers_.bytes()));
  // Near the goal, this frees all unused memory, but not again within kDecayPeriod, because new
  // fibers would soon need the freed stacks again.
  if (is_near && now - given_back_ >= tuning::kDecayPeriod) {
    int steps = 0;
    while (steps < kSteps && trim_some()) ++steps;
    if (steps < kSteps) given_back_ = now;
  }
  return goal_.is_close();
}

}  // namespace weft::scheduler
