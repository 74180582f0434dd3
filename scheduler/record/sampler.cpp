#include "scheduler/record/sampler.hpp"

#include <weft/deadline.hpp>

#include "scheduler/tuning.hpp"

namespace weft::scheduler {

using detail::acq_rel;
using detail::acquire;
using detail::relaxed;
using detail::release;

void Sampler::begin(std::int64_t now) noexcept {
  next_ = now + tuning::kSamplePause;
  if (phase_ == Phase::armed || phase_ == Phase::running) return;
  if (phase_ == Phase::waiting) {
    const bool is_pending = source_->fiber_.load(relaxed) == followed_;
    if (is_pending && now - source_->ready_since_.load(relaxed) < tuning::kSamplePatience) return;
    if (source_ == this) fiber_.store(nullptr, relaxed);
  }
  // While fiber_ is not null, a thief's sampler may follow that fiber, so no new sample may begin.
  phase_ = fiber_.load(relaxed) == nullptr ? Phase::armed : Phase::off;
}

void Sampler::follow(const fibers::Fiber& fiber) noexcept {
  followed_ = &fiber;
  source_ = this;
  ready_since_.store(Deadline::now_nanoseconds(), relaxed);
  fiber_.store(&fiber, release);  // [sample]
  phase_ = Phase::waiting;
}

void Sampler::arrive() noexcept {
  const std::int64_t since = source_->ready_since_.load(relaxed);
  const fibers::Fiber* expected = followed_;
  const bool won = source_->fiber_.compare_exchange_strong(expected, nullptr, acq_rel,  // [sample]
                                                           relaxed);
  phase_ = Phase::off;
  if (!won) return;
  running_since_ = Deadline::now_nanoseconds();
  latencies_.record(running_since_ - since);
  phase_ = Phase::running;
}

void Sampler::finish() noexcept {
  const std::int64_t now = Deadline::now_nanoseconds();
  runs_.record(now - running_since_);
  next_ = now + tuning::kSamplePause;
  phase_ = Phase::off;
}

bool Sampler::adopt(Sampler& victim) noexcept {
  if (phase_ == Phase::waiting || phase_ == Phase::running) return false;
  const fibers::Fiber* fiber = victim.fiber_.load(acquire);  // [sample]
  if (fiber == nullptr) return false;
  followed_ = fiber;
  source_ = &victim;
  phase_ = Phase::waiting;
  return true;
}

}  // namespace weft::scheduler
