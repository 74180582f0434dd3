// How a scheduler gives back the memory of free stacks and records.
#include <algorithm>
#include <utility>

#include "scheduler/scheduler.hpp"

namespace weft::scheduler {

using detail::acquire;
using detail::relaxed;
using detail::release;

void Scheduler::trim() noexcept {
  while (trim_some()) {
  }
}

bool Scheduler::has_surplus_hint() const noexcept {
  return stacks_.has_warm_hint() || fibers_.has_surplus_hint();
}

// A fraction of a millisecond's worth, of both.
constexpr unsigned kStackChains = 8;
constexpr unsigned kFiberChains = 16;
// The most at once of what has to be given back in time: 4096 stacks, some milliseconds.
constexpr std::int64_t kMostStackChains = 128;
constexpr std::int64_t kMostFiberChains = 256;

bool Scheduler::trim_some() noexcept {
  const bool more_stacks = stacks_.trim(kStackChains);
  const bool more_fibers = fibers_.trim(kFiberChains);
  return more_stacks || more_fibers;
}

bool Scheduler::decay_some(std::int64_t now) noexcept {
  // One at a time: the others have better to do.
  if (decaying_.load(relaxed) || decaying_.exchange(true, acquire)) return false;  // [decay]
  const std::int64_t since = std::min(now - std::exchange(last_decay_, now), kDecayPeriod);
  if (now - decay_period_began_ >= kDecayPeriod) {
    decay_period_began_ = now;
    stacks_.begin_decay_period();
    fibers_.begin_decay_period();
    stacks_due_ = stacks_.due();
    fibers_due_ = fibers_.due();
  }
  // Releases the due entries in proportion to the elapsed fraction of the period.
  const auto share = [since](std::int64_t due, unsigned least, std::int64_t most) {
    return static_cast<unsigned>(std::clamp<std::int64_t>(due * since / kDecayPeriod, least, most));
  };
  const bool more_stacks = stacks_.decay(share(stacks_due_, kStackChains, kMostStackChains));
  const bool more_fibers = fibers_.decay(share(fibers_due_, kFiberChains, kMostFiberChains));
  decaying_.store(false, release);  // [decay]
  return more_stacks || more_fibers;
}

}  // namespace weft::scheduler
