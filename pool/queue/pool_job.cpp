// Implements tasks that callers wait for, or that have attributes: their states, cancellation,
// stop requests, deadlines and timeouts.
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <weft/detail/invariant.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/task.hpp>
#include <weft/detail/task_attributes.hpp>

namespace weft::detail {
namespace {

struct Release {
  void operator()(PoolJob* job) const noexcept { job->release_reference(); }
};

}  // namespace

// ---- Attributes

void TaskAttributes::CancelJob::operator()() const noexcept { (void)job->cancel(); }

void TaskAttributes::disarm() noexcept {
  if (alarm == nullptr) return;
  (void)alarm->cancel();
  alarm.reset();
}

void TaskAttributes::set(const SubmitOptions& options, bool takes_stop) {
  if (options.weight < 1) {
    throw std::invalid_argument("weft::SubmitOptions: weight = " + std::to_string(options.weight) +
                                "; must be at least 1");
  }
  if (options.timeout <= options.timeout.zero()) {
    throw std::invalid_argument("weft::SubmitOptions: timeout = " +
                                std::to_string(options.timeout.count()) + " ns; must be above 0");
  }
  if (options.timeout != kNever && !takes_stop) {
    throw std::invalid_argument(
        "weft::SubmitOptions: a timeout asks the task to stop, so the task must take a "
        "std::stop_token");
  }
  priority = options.priority;
  key = options.key;
  weight = options.weight;
  deadline = options.deadline;
  timeout = options.timeout;
}

template <class Action>
void PoolJob::set_alarm_for(Deadline deadline, Action action) {
  attributes_->disarm();
  // Relaxed: the caller already has a reference.
  references_.fetch_add(1, relaxed);
  Task task([job = std::unique_ptr<PoolJob, Release>(this), action] { action(*job); });
  attributes_->alarm = AlarmHandle(set_alarm(deadline, std::move(task)));
}

void PoolJob::watch_deadline() {
  if (attributes_->deadline.is_never()) return;
  set_alarm_for(attributes_->deadline, [](PoolJob& job) { (void)job.drop(Errc::timed_out); });
}

// ---- Its life

std::error_code PoolJob::over_before_start() const noexcept {
  // Relaxed: the value is only compared; it publishes no other data.
  const bool is_dropped = state_.load(relaxed) != kPending;
  // The deadline check comes after the load of state_. Therefore, the check returns timed_out if
  // the alarm dropped the job at its deadline.
  if (attributes_->deadline.passed()) return Errc::timed_out;
  return is_dropped ? make_error_code(Errc::cancelled) : std::error_code();
}

PoolJob::Outcome PoolJob::execute_attributed() noexcept {
  TaskAttributes& attributes = *attributes_;
  if (attributes.deadline.passed()) (void)drop(Errc::timed_out);
  Outcome outcome = Outcome::cancelled;
  if (claim(kRunning)) {
    outcome = Outcome::failed;
    try {
      if (attributes.timeout != kNever) {
        set_alarm_for(Deadline::after(attributes.timeout),
                      [](PoolJob& job) { job.request_stop(); });
      }
      if (invoke()) outcome = Outcome::completed;
    } catch (...) {
      // The alarm could not be set, and without it the task must not run.
      fail(std::current_exception());
    }
  }
  // After its end, the job must not call user code.
  attributes.disarm();
  attributes.stop.remove();
  // A job that was dropped just before its acceptance still has its callable.
  if (state_.load(acquire) == kCancelled) drop_callable();  // [job]
  return outcome;
}

PoolJob::Outcome PoolJob::execute() noexcept {
  if (attributes_ != nullptr) [[unlikely]]
    return execute_attributed();
  if (!claim(kRunning)) return Outcome::cancelled;
  if (!invoke()) return Outcome::failed;
  return is_drain() ? Outcome::drained : Outcome::completed;
}

void PoolJob::abandon() noexcept {
  const Kind kind = kind_;
  if (attributes_ != nullptr) attributes_->disarm();
  (void)cancel();
  if (kind != Kind::on_stack) release_reference();
}

PoolJob::Settled PoolJob::settle(Outcome outcome) noexcept {
  const Kind kind = kind_;  // A job on a stack may be destroyed as soon as its end is published.
  Waiter* const waiters = outcome == Outcome::cancelled ? nullptr : publish(kFinished);
  if (kind == Kind::on_stack) return {.waiters = waiters};
  return {.waiters = waiters, .is_last = !release_unless_last()};
}

bool PoolJob::cancel() noexcept {
  if (drop(Errc::cancelled)) return true;
  // Relaxed: the value is only compared; it publishes no other data.
  const std::uint32_t state = state_.load(relaxed);
  if (state == kRunning) request_stop();
  return state == kDropping || state == kCancelled;
}

void PoolJob::release_reference() noexcept {
  const std::uint32_t before = references_.fetch_sub(1, acq_rel);  // [job-refs]
  WEFT_INVARIANT(before > 0, "PoolJob I3: a reference that is released was counted");
  if (before == 1) delete this;
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
  // Relaxed: the pool's lock orders these stores before the next use of the job.
  state_.store(kPending, relaxed);
  is_accepted_.store(false, relaxed);
  return true;
}

// Relaxed: this thread got the job under a lock or from a handle, so it already sees the callable.
bool PoolJob::claim(State state) noexcept {
  std::uint32_t expected = kPending;
  return state_.compare_exchange_strong(expected, state, relaxed, relaxed);
}

Waiter* PoolJob::publish(State end) noexcept {
  lock_.lock();
  // Relaxed: the caller itself has stored this value, in claim().
  WEFT_INVARIANT(state_.load(relaxed) == (end == kFinished ? kRunning : kDropping),
                 "PoolJob I1: kRunning comes before kFinished, kDropping before kCancelled");
  state_.store(end, release);  // [job]
  Waiter* const waiting = waiters_.claim_all();
  lock_.unlock();
  return waiting;
}

}  // namespace weft::detail
