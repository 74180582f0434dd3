// A job as a pool treats it; and its stop requests, its deadline, its timeout, if it has any.
#include <weft/detail/task_attributes.hpp>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/task.hpp>

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

void TaskAttributes::CancelJob::operator()() const noexcept { (void)job->cancel(); }

void TaskAttributes::disarm() noexcept {
  if (alarm == nullptr) return;
  (void)cancel_alarm(*alarm);
  alarm.reset();
}

void TaskAttributes::set(const SubmitOptions& options, bool takes_stop) {
  if (options.weight < 1) {
    throw std::invalid_argument("weft::SubmitOptions: weight = " + std::to_string(options.weight) +
                                ", must be at least 1");
  }
  if (options.timeout <= options.timeout.zero()) {
    throw std::invalid_argument("weft::SubmitOptions: timeout = " +
                                std::to_string(options.timeout.count()) + " ns, must be above 0");
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

std::error_code PoolJob::over_before_start() const noexcept {
  // Asked first: the alarm may have dropped the job already.
  if (attributes_->deadline.passed()) return Errc::timed_out;
  // Relaxed: a number that is compared, nothing is read through it.
  if (state_.load(relaxed) != kPending) return Errc::cancelled;
  return {};
}

template <class Action>
void PoolJob::set_alarm_for(Deadline deadline, Action action) {
  attributes_->disarm();
  // Relaxed: who has a reference may make another.
  references_.fetch_add(1, relaxed);
  attributes_->alarm = AlarmHandle(set_alarm(deadline, Task(AlarmedJob<Action>(*this, action))));
}

void PoolJob::watch_deadline() {
  if (attributes_->deadline.is_never()) return;
  set_alarm_for(attributes_->deadline, [](PoolJob& job) { (void)job.drop(Errc::timed_out); });
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
      // There was no alarm to be had, and without one the task must not run.
      fail(std::current_exception());
    }
  }
  // Nothing of the user's is called on behalf of this job once it has ended.
  attributes.disarm();
  attributes.stop.remove();
  // One that was dropped just before it was accepted still has it.
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

}  // namespace weft::detail
