// What becomes of a job with SubmitOptions: its stop requests, its deadline, its timeout.
#include <weft/detail/pool_terms.hpp>

#include <exception>
#include <stdexcept>
#include <utility>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/task.hpp>

#include "pool/pool_core.hpp"

namespace weft::detail {
namespace {

// A job that an alarm refers to, and what is done with it then.
template <class Action>
class AlarmedJob {
 public:
  // Takes over a reference.
  AlarmedJob(PoolJob& job, Action action) noexcept : job_(&job), action_(action) {}
  AlarmedJob(AlarmedJob&& other) noexcept
      : job_(std::exchange(other.job_, nullptr)), action_(other.action_) {}
  AlarmedJob& operator=(AlarmedJob&&) = delete;
  ~AlarmedJob() {
    if (job_ != nullptr) job_->release_reference();
  }
  void operator()() { action_(*job_); }

 private:
  PoolJob* job_;
  Action action_;
};

}  // namespace

void PoolTerms::CancelJob::operator()() const noexcept { (void)job->cancel(); }

void PoolTerms::disarm() noexcept {
  if (alarm == nullptr) return;
  (void)cancel_alarm(*alarm);
  alarm.reset();
}

void PoolTerms::set(const SubmitOptions& options, bool takes_stop) {
  if (options.weight < 1) {
    throw std::invalid_argument("weft::SubmitOptions: weight must be at least 1");
  }
  if (options.timeout <= options.timeout.zero()) {
    throw std::invalid_argument("weft::SubmitOptions: timeout must be above 0");
  }
  if (options.timeout != kNever && !takes_stop) {
    throw std::invalid_argument(
        "weft::SubmitOptions: timeout needs a task that takes a std::stop_token");
  }
  priority = options.priority;
  key = options.key;
  weight = options.weight;
  deadline = options.deadline;
  timeout = options.timeout;
}

std::error_code PoolJob::over_before_start() const noexcept {
  // Asked first: the alarm may have dropped the job already.
  if (terms_->deadline.passed()) return Errc::timed_out;
  // Relaxed: a number that is compared, nothing is read through it.
  if (state_.load(relaxed) != kPending) return Errc::cancelled;
  return {};
}

template <class Action>
void PoolJob::set_alarm_for(Deadline deadline, Action action) {
  terms_->disarm();
  // Relaxed: who has a reference may make another.
  references_.fetch_add(1, relaxed);
  terms_->alarm = AlarmHandle(set_alarm(deadline, Task(AlarmedJob<Action>(*this, action))));
}

void PoolJob::watch_deadline() {
  if (terms_->deadline.is_never()) return;
  set_alarm_for(terms_->deadline, [](PoolJob& job) { (void)job.drop(Errc::timed_out); });
}

PoolJob::Outcome PoolJob::execute_on_terms() noexcept {
  PoolTerms& terms = *terms_;
  if (terms.deadline.passed()) (void)drop(Errc::timed_out);
  Outcome outcome = Outcome::cancelled;
  if (claim(kRunning)) {
    outcome = Outcome::failed;
    try {
      if (terms.timeout != kNever) {
        set_alarm_for(Deadline::after(terms.timeout), [](PoolJob& job) { job.request_stop(); });
      }
      if (invoke()) outcome = Outcome::completed;
    } catch (...) {
      // There was no alarm to be had, and without one the task must not run.
      fail(std::current_exception());
    }
  }
  // Nothing of the user's is called on behalf of this job once it has ended.
  terms.disarm();
  terms.stop.remove();
  return outcome;
}

}  // namespace weft::detail

namespace weft::pool {

namespace {

// Jobs kept for later; more are freed.
constexpr std::size_t kSpares = 256;

}  // namespace

detail::TermedTask& PoolCore::take_spare_task() {
  lock_.lock();
  detail::PoolTerms* const spare = spares_;
  if (spare != nullptr) {
    spares_ = spare->next;
    --spare_count_;
  }
  lock_.unlock();
  if (spare == nullptr) return *new detail::TermedTask(*this);
  return static_cast<detail::TermedTask&>(*spare->job);
}

void PoolCore::begin_terms(const detail::PoolItem& item) noexcept {
  extra_running_ += Backlog::weight_of(item) - 1;
}

std::size_t PoolCore::end_job(detail::PoolJob& job, Worker& self) noexcept {
  std::size_t weight = 1;
  if (detail::PoolTerms* const terms = job.terms()) {
    weight = terms->weight;
    if (end_terms(*terms)) return weight;
  }
  const detail::PoolJob::Settled settled = job.settle(self.outcome);
  self.told = settled.waiters;
  if (settled.is_unused) self.unused = &job;
  if (settled.is_last) destroy_last(job, self);
  return weight;
}

bool PoolCore::end_terms(detail::PoolTerms& terms) noexcept {
  if (terms.key.is_set()) {
    queue_.pass_on_key(terms);
    release_key(terms.key);
  }
  if (spare_count_ == kSpares || !terms.job->make_reusable()) return false;
  terms.next = std::exchange(spares_, &terms);
  ++spare_count_;
  return true;
}

// Requires lock_; releases it meanwhile.
void PoolCore::destroy_last(detail::PoolJob& job, const Worker& self) noexcept {
  lock_.unlock();
  report_lost(job, self);
  job.release_reference();
  lock_.lock();
}

}  // namespace weft::pool
