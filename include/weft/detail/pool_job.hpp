// Represents a pool's tasks for the pool's queue and for callers that wait for the tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <weft/detail/blocking_scope.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/give_back.hpp>
#include <weft/detail/select_case.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/detail/task.hpp>
#include <weft/detail/waiter.hpp>
#include <weft/error.hpp>

namespace weft {

namespace pool {
class PoolCore;
class Registration;
}  // namespace pool

namespace detail {

struct TaskAttributes;

// A callable that takes a std::stop_token receives one that reports stop requests for its task.
template <class F>
inline constexpr bool kTakesStop = std::is_invocable_v<F, std::stop_token>;
template <class F>
concept PoolCallable = kTakesStop<F> || std::invocable<F>;

template <class F>
struct PoolResultOf : std::invoke_result<F> {};
template <class F>
requires kTakesStop<F>
struct PoolResultOf<F> : std::invoke_result<F, std::stop_token> {
};
template <class F>
using PoolResult = typename PoolResultOf<F>::type;

// A task with attributes or with a waiting caller, or a drain task. A job with a PoolTask is on the
// heap and has a refcount; the job of FiberPool::run() is on the waiting caller's stack. The pool
// alone owns, and may reuse, a job that has SubmitOptions but no PoolTask.
// Invariants
//   I1  state_ goes kPending -> kRunning -> kFinished, or kPending -> kDropping -> kCancelled. Only
//       the thread that changes state_ from kPending accesses the callable and the outcome, until
//       this thread publishes the job's end.
//   I2  The job's end is published under lock_, and a waiter locks lock_ before it returns.
//       Therefore, a job on a stack is not destroyed while the publisher still uses the job. Not
//       asserted, because no assertion can tell which thread holds a lock.
//   I3  references_ counts the pool, the handle of a shared job, and an alarm for the job.
// Order
//   [job]       publish() sets state_ (release) -> ready() loads it (acquire): the caller then
//               sees the outcome.
//   [job-refs]  Each owner decrements references_ (acq_rel) -> the last owner loads it (acquire):
//               the last owner sees what all others did to the job, and may destroy it.
class PoolJob {
 public:
  // drained: the job was a drain task, which a sub-pool made.
  enum class Outcome : std::uint8_t { completed, failed, cancelled, drained };
  // drain: the job of a drain task, which a sub-pool submits to its parent.
  enum class Kind : std::uint8_t { on_heap, on_stack, unwatched, drain };

  PoolJob(const pool::PoolCore& root, Kind kind, TaskAttributes* attributes = nullptr) noexcept
      : root_(&root),
        attributes_(attributes),
        kind_(kind),
        references_(kind == Kind::on_heap ? 2 : 1) {}

  // Runs the callable, unless the job has been dropped. Only the pool calls execute().
  [[nodiscard]] Outcome execute() noexcept;
  // After execute(), the pool calls settle() while it holds the lock under which it frees the slot.
  // This call ends the job and returns the waiters, which the pool must wake with wake_chain()
  // after it unlocks. If the job has no other reference (`is_last`), the pool destroys the job and
  // its outcome before the slot is free. Otherwise, it accesses the job again only if `is_unused`.
  struct Settled {
    Waiter* waiters = nullptr;
    bool is_last = false;
    bool is_unused = false;  // No caller refers to the job; it has no outcome.
  };
  [[nodiscard]] virtual Settled settle(Outcome outcome) noexcept;
  // To drop the task, the pool calls abandon() instead of execute() and settle().
  void abandon() noexcept;
  // A task's exception and callable type, which the pool takes after execute() if no caller waits.
  struct Thrown {
    std::exception_ptr exception;
    const std::type_info* type = nullptr;
  };
  [[nodiscard]] virtual Thrown take_exception() noexcept { return {}; }
  [[nodiscard]] bool is_unwatched() const noexcept { return kind_ == Kind::unwatched; }
  [[nodiscard]] bool is_drain() const noexcept { return kind_ == Kind::drain; }
  // Returns whether no handle can read the outcome. The pool calls it after execute().
  [[nodiscard]] bool is_dropped() const noexcept {
    return kind_ == Kind::on_heap && references_.load(acquire) == 1;  // [job-refs]
  }
  // The pool calls drop_outcome() if is_dropped() is true.
  virtual void drop_outcome() noexcept {}
  // The pool calls make_reusable() after execute(). If the job has no handle and only the pool
  // refers to it, prepares it for another call and returns true.
  [[nodiscard]] bool make_reusable() noexcept;
  // The pool calls note_accepted() under its lock when it accepts the job. After that, drop()
  // destroys the callable; a refused callable returns to its owner.
  void note_accepted() noexcept {
    // Relaxed: if drop() misses the store, the pool destroys the callable when it reaches the job.
    is_accepted_.store(true, relaxed);
  }
  // Notes that the pool has accepted a drain task; see note_accepted().
  virtual void drain_accepted() noexcept {}
  // Returns the job's attributes, or null if there are none.
  [[nodiscard]] TaskAttributes* attributes() const noexcept { return attributes_; }
  // Returns the error with which the pool should refuse the job, or an empty one to accept it.
  [[nodiscard]] std::error_code over_before_start() const noexcept;

  // A waiter calls the following functions.
  [[nodiscard]] bool ready() const noexcept { return state_.load(acquire) >= kFinished; }  // [job]
  [[nodiscard]] bool wait_until(const Until& until) noexcept;
  // Parks until the job's end, for a caller that has already looked up its registration.
  [[nodiscard]] bool wait_until(const Until& until, pool::Registration* of_caller) noexcept;
  // A select calls lock() and waiters() to wait; PoolCase passes root() to its BlockingScope.
  [[nodiscard]] SpinLock& lock() noexcept { return lock_; }
  [[nodiscard]] WaitList& waiters() noexcept { return waiters_; }
  [[nodiscard]] const pool::PoolCore* root() const noexcept { return root_; }
  // Returns true if the callable will never run. If the callable is running, asks it to stop.
  bool cancel() noexcept;
  void release_reference() noexcept;
  // Sets an alarm that drops the job at its deadline, if any. Throws what spawn() throws.
  void watch_deadline();

 protected:
  virtual ~PoolJob() = default;
  // Returns why the job has no outcome, or an empty error code if it has one.
  [[nodiscard]] std::error_code reason_for_none() const noexcept;

 private:
  enum State : std::uint32_t { kPending, kRunning, kDropping, kFinished, kCancelled };

  // Returns true if the callable returned, false if it threw. Destroys the callable in either case.
  [[nodiscard]] virtual bool invoke() noexcept = 0;
  virtual void drop_callable() noexcept = 0;
  virtual void request_stop() noexcept = 0;

  [[nodiscard]] bool claim(State state) noexcept;
  // Publishes the job's end, and returns the waiters, which the caller must wake.
  [[nodiscard]] Waiter* publish(State end) noexcept;
  // Returns false if the caller has the last reference; otherwise releases it and returns true.
  [[nodiscard]] bool release_unless_last() noexcept;
  [[nodiscard]] bool drop(Errc reason) noexcept;
  [[nodiscard]] Outcome execute_attributed() noexcept;
  // Stores an exception as the outcome of a callable that was not called.
  virtual void fail(std::exception_ptr exception) noexcept = 0;
  template <class Action>
  void set_alarm_for(Deadline deadline, Action action);

  // May dangle. Only the pool's running tasks dereference it, and the pool outlives them.
  const pool::PoolCore* const root_;
  TaskAttributes* const attributes_;
  const Kind kind_;
  // The reason why the job was dropped; written before the job's end is published.
  Errc reason_ = Errc::cancelled;
  Atomic<std::uint32_t> state_{kPending};
  Atomic<std::uint32_t> references_;
  Atomic<bool> is_accepted_{false};  // Used only if the job has attributes.
  SpinLock lock_;
  WaitList waiters_;
};

// A select case that becomes ready when the job ends.
template <class Handler>
class PoolCase final : public SelectCase {
 public:
  PoolCase(PoolJob* job, Handler handler)
      : SelectCase(job == nullptr ? nullptr : &job->lock(),
                   job == nullptr ? nullptr : &job->waiters()),
        job_(job),
        handler_(std::move(handler)) {}

  void handle() override { handler_(); }

 private:
  bool attempt() noexcept override { return job_->ready(); }
  bool is_ready() noexcept override { return job_->ready(); }
  bool conclude() noexcept override { return true; }
  bool release_slots() noexcept override {
    return job_ != nullptr && scope_.emplace(job_->root()).is_made();
  }
  void reacquire_slots() noexcept override { scope_.reset(); }

  PoolJob* const job_;
  Handler handler_;
  std::optional<BlockingScope> scope_;
};

// Holds the outcome of a job: a value, or the exception that ended the job.
template <class R>
class PoolOutcome : public PoolJob {
 public:
  using PoolJob::PoolJob;

  // Moves the value out, or throws if the job has no value. Requires ready().
  R take() {
    if (const std::error_code none = this->reason_for_none()) {
      WEFT_THROW(std::system_error(none, "weft::PoolTask: the task never ran"));
    }
    if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
    if constexpr (!std::is_void_v<R>) return static_cast<R>(std::move(*value_));
  }

 protected:
  // A reference is stored as a std::reference_wrapper, which converts back to the reference.
  using Reference = std::reference_wrapper<std::remove_reference_t<R>>;
  using Stored = std::conditional_t<std::is_void_v<R>, std::monostate,
                                    std::conditional_t<std::is_reference_v<R>, Reference, R>>;
  std::optional<Stored> value_;
  std::exception_ptr exception_;
};

// Provides a job's stop token. It reports requests to stop the pool and, if `has_own`, the job.
class PoolStop {
 public:
  PoolStop(std::stop_token of_pool, bool has_own)
      : of_pool_(std::move(of_pool)),
        own_(has_own ? std::stop_source() : std::stop_source(std::nostopstate)) {}

  // Returns the token for the task.
  [[nodiscard]] std::stop_token token() const noexcept {
    return own_.stop_possible() ? own_.get_token() : of_pool_;
  }
  // Calls `call`. During that call, the job's own source forwards stop requests from the pool.
  template <class Call>
  decltype(auto) while_following(Call call) {
    StopRegistration<RequestStop> registration;
    if (own_.stop_possible()) registration.add(of_pool_, {own_});
    return call();
  }
  template <class F>
  decltype(auto) call(F& callable) {
    return while_following([&]() -> decltype(auto) { return std::invoke(callable, token()); });
  }
  // Requests a stop through the job's own source only.
  void request() noexcept { own_.request_stop(); }

 private:
  std::stop_token of_pool_;
  std::stop_source own_;
};

// Replaces PoolStop for a job that does not take a token.
struct NoPoolStop {
  NoPoolStop(const std::stop_token& /*of_pool*/, bool /*has_own*/) noexcept {}
  template <class F>
  decltype(auto) call(F& callable) {
    return std::invoke(callable);
  }
  void request() noexcept {}
};

// Holds a submitted callable that takes a token, and the token.
template <class F>
struct StoppableTask {
  using Shown = F;
  void operator()() { std::invoke(callable, std::move(token)); }

  F callable;
  std::stop_token token;
};

// A job and its callable. If F is a reference, the caller keeps the callable.
template <class F, class R>
class PoolCall : public PoolOutcome<R> {
 public:
  template <class G>
  PoolCall(const pool::PoolCore& core, PoolJob::Kind kind, std::stop_token stop_of_pool,
           G&& callable, TaskAttributes* attributes = nullptr)
      : PoolOutcome<R>(core, kind, attributes),
        callable_(std::in_place, std::forward<G>(callable)),
        stop_(std::move(stop_of_pool), kind == PoolJob::Kind::on_heap) {}

  // Returns the callable of a job that the pool has refused.
  [[nodiscard]] F& refused() noexcept { return *callable_; }

 private:
  using Held = std::conditional_t<std::is_reference_v<F>,
                                  std::reference_wrapper<std::remove_reference_t<F>>, F>;

  bool invoke() noexcept override {
    WEFT_TRY {
      if constexpr (std::is_void_v<R>) {
        stop_.call(*callable_);
      } else {
        this->value_.emplace(stop_.call(*callable_));
      }
    }
    WEFT_CATCH_ALL { this->exception_ = std::current_exception(); }
    callable_.reset();
    return this->exception_ == nullptr;
  }
  void drop_callable() noexcept override { callable_.reset(); }
  [[nodiscard]] PoolJob::Thrown take_exception() noexcept override {
#ifdef __cpp_rtti
    const std::type_info* const type = &typeid(typename ShownType<F>::Type);
#else
    const std::type_info* const type = nullptr;
#endif
    return {std::exchange(this->exception_, nullptr), type};
  }
  void drop_outcome() noexcept override {
    this->value_.reset();
    this->exception_ = nullptr;
  }
  void fail(std::exception_ptr exception) noexcept override {
    callable_.reset();
    this->exception_ = std::move(exception);
  }
  void request_stop() noexcept override { stop_.request(); }

  std::optional<Held> callable_;
  std::conditional_t<kTakesStop<std::remove_reference_t<F>&>, PoolStop, NoPoolStop> stop_;
};

// Returns true for an empty std::function or similar wrapper, and for a null function pointer.
template <class F>
[[nodiscard]] bool is_empty_callable(const F& callable) noexcept {
  if constexpr (std::is_constructible_v<F, std::nullptr_t> && requires { callable == nullptr; }) {
    return callable == nullptr;
  }
  return false;
}

// Holds submitted work: a plain task, or a PoolJob. An item that is destroyed before it runs
// notifies the waiters of its job.
class PoolItem {
 public:
  PoolItem() noexcept = default;
  // Makes an empty item if `callable` is empty.
  template <class F>
  PoolItem(std::in_place_t, F&& callable)
      : task(is_empty_callable<std::decay_t<F>>(callable) ? Task()
                                                          : Task(std::forward<F>(callable))) {}
  explicit PoolItem(PoolJob& waited_for) noexcept : job(&waited_for) {}
  PoolItem(PoolItem&& other) noexcept
      : task(std::move(other.task)),
        job(std::exchange(other.job, nullptr)),
        submitted_at(other.submitted_at) {}
  // Takes the content of `other`. This item must be empty.
  PoolItem& operator=(PoolItem&& other) noexcept {
    task = std::move(other.task);
    job = std::exchange(other.job, nullptr);
    submitted_at = other.submitted_at;
    return *this;
  }
  ~PoolItem() {
    if (job != nullptr) job->abandon();
  }

  [[nodiscard]] bool empty() const noexcept { return !task && job == nullptr; }

  // Moves the callable of a refused task back to `owner`.
  template <class F>
  void give_back_to(std::remove_reference_t<F>& owner) noexcept {
    if (task) give_back_from<F>(task, owner);
  }
  template <class F>
  static void give_back_from(Task& refused, std::remove_reference_t<F>& owner) noexcept {
    using Callable = std::decay_t<F>;
    if constexpr (kTakesStop<Callable&>) {
      give_back<F>(owner, refused.callable<StoppableTask<Callable>>().callable);
    } else {
      give_back<F>(owner, refused.callable<Callable>());
    }
  }

  Task task;
  PoolJob* job = nullptr;
  // The monotonic time of the submission, in nanoseconds; 0 if it is not recorded.
  std::int64_t submitted_at = 0;
};

}  // namespace detail

}  // namespace weft
