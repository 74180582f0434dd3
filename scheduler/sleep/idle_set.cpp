#include "scheduler/sleep/idle_set.hpp"

#include <bit>
#include <weft/detail/invariant.hpp>

namespace weft::scheduler {

using detail::acquire;
using detail::full_fence;
using detail::relaxed;
using detail::seq_cst;

bool IdleSet::choose(unsigned worker) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (worker % 64);
  return (bits_[worker / 64].fetch_and(~bit, seq_cst) & bit) != 0;  // [idle]
}

int IdleSet::choose_sleeper(int watcher) noexcept {
  for (unsigned i = 0; i < words_; ++i) {
    for (std::uint64_t word = bits_[i].load(relaxed); word != 0; word &= word - 1) {
      const int worker = static_cast<int>(i * 64) + std::countr_zero(word);
      if (worker != watcher && choose(static_cast<unsigned>(worker))) return worker;
    }
  }
  return watcher != kNobody && choose(static_cast<unsigned>(watcher)) ? watcher : kNobody;
}

int IdleSet::any_asleep() const noexcept {
  for (unsigned i = 0; i < words_; ++i) {
    const std::uint64_t word = bits_[i].load(acquire);  // [idle]
    if (word != 0) return static_cast<int>(i * 64) + std::countr_zero(word);
  }
  return kNobody;
}

int IdleSet::work_added(int watcher) noexcept {
  while (wants_wake_hint()) {
    std::uint32_t expected = 0;
    if (!searching_.compare_exchange_strong(expected, 1, seq_cst, relaxed))
      return kNobody;  // [idle]
    const int chosen = choose_sleeper(watcher);
    if (chosen != kNobody) return chosen;
    // No sleeper is left, because all have woken by themselves. Meanwhile, another thread may have
    // added work without waking a worker, because searching_ was 1. This thread therefore lowers
    // searching_ and checks again.
    (void)end_search();
    full_fence();  // [idle]
  }
  return kNobody;
}

bool IdleSet::try_begin_search() noexcept {
  std::uint32_t searching = searching_.load(relaxed);
  do {
    // At most half of the workers, rounded up, may search, because more searchers would only
    // compete for the same queues.
    if (searching * 2 >= workers_.load(relaxed) && searching > 0) return false;
  } while (
      !searching_.compare_exchange_weak(searching, searching + 1, seq_cst, relaxed));  // [idle]
  return true;
}

void IdleSet::begin_sleep(unsigned worker) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (worker % 64);
  const std::uint64_t before = bits_[worker / 64].fetch_or(bit, seq_cst);  // [idle]
  WEFT_INVARIANT((before & bit) == 0, "IdleSet I1: the bit of a worker that is awake is clear");
}

bool IdleSet::try_end_sleep(unsigned worker) noexcept { return choose(worker); }

}  // namespace weft::scheduler
