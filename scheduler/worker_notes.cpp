// For those who watch: what a worker notes of what it does.
#include "scheduler/worker.hpp"

namespace weft::scheduler {

using detail::relaxed;
using fibers::Fiber;

// At a moment when the worker looks at the clock anyway.
void Worker::begin_watching(std::int64_t now) noexcept {
  sampler_.begin(now);
  watching_ = sampler_.is_on();
}

void Worker::note_ready(const Fiber& fiber) noexcept { sampler_.ready(fiber); }

void Worker::note_switch(Departure, const Fiber* next) noexcept {
  sampler_.run(next);
  watching_ = sampler_.is_on();
}

void Worker::note_stolen(Worker& victim) noexcept {
  counters_.steals.add_one();
  if (sampler_.adopt(victim.sampler_)) watching_ = true;
}

Worker::Times Worker::times(std::int64_t now) const noexcept {
  const std::int64_t born = born_.load(relaxed);
  if (born == 0) return {};
  const std::int64_t since = parked_since_.load(relaxed);
  const auto ended = static_cast<std::int64_t>(counters_.parked_time.get());
  return {now - born, ended + (since == 0 ? 0 : now - since)};
}

}  // namespace weft::scheduler
