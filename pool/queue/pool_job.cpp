// A task that somebody waits for, or that has attributes: its states and its end.
#include <weft/detail/task_attributes.hpp>
#include <weft/pool.hpp>

namespace weft::detail {

PoolJob::Settled PoolJob::settle(Outcome outcome) noexcept {
  const Kind kind = kind_;  // A job on a stack is gone once its end is published.
  Waiter* const waiters = outcome == Outcome::cancelled ? nullptr : publish(kFinished);
  if (kind == Kind::on_stack) return {.waiters = waiters};
  return {.waiters = waiters, .is_last = !release_unless_last()};
}

bool PoolJob::cancel() noexcept {
  if (drop(Errc::cancelled)) return true;
  // Relaxed: a number that is compared, nothing is read through it.
  const std::uint32_t state = state_.load(relaxed);
  if (state == kRunning) request_stop();
  return state == kDropping || state == kCancelled;
}

void PoolJob::release_reference() noexcept {
  if (references_.fetch_sub(1, acq_rel) == 1) delete this;  // [job-refs]
}

bool PoolJob::release_unless_last() noexcept {
  std::uint32_t seen = references_.load(acquire);  // [job-refs]
  while (seen > 1) {
    const std::uint32_t left = seen - 1;
    if (references_.compare_exchange_weak(seen, left, acq_rel, acquire)) return true;  // [job-refs]
  }
  return false;
}

bool PoolJob::drop(Errc reason) noexcept {
  if (!claim(kDropping)) return false;
  reason_ = reason;
  // Relaxed: see note_accepted().
  if (attributes_ == nullptr || is_accepted_.load(relaxed)) drop_callable();
  wake_chain(publish(kCancelled));
  return true;
}

std::error_code PoolJob::reason_for_none() const noexcept {
  if (state_.load(acquire) != kCancelled) return {};  // [job]
  return reason_ == Errc::timed_out ? make_error_code(reason_)
                                    : std::make_error_code(std::errc::operation_canceled);
}

bool PoolJob::make_reusable() noexcept {
  if (kind_ != Kind::unwatched || references_.load(acquire) != 1) return false;  // [job-refs]
  // Relaxed: the pool's lock hands the job to its next user.
  state_.store(kPending, relaxed);
  is_accepted_.store(false, relaxed);
  return true;
}

// Relaxed: the callable came here through the lock of the pool, or with the handle.
bool PoolJob::claim(State state) noexcept {
  std::uint32_t expected = kPending;
  return state_.compare_exchange_strong(expected, state, relaxed, relaxed);
}

Waiter* PoolJob::publish(State end) noexcept {
  lock_.lock();
  state_.store(end, release);  // [job]
  Waiter* const waiting = waiters_.claim_all();
  lock_.unlock();
  return waiting;
}

}  // namespace weft::detail
