// Runs a group of tasks, and waits for all of them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/accepted.hpp>
#include <weft/context.hpp>
#include <weft/detail/end_wait.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/give_back.hpp>
#include <weft/detail/group_pool.hpp>
#include <weft/detail/group_queue.hpp>
#include <weft/detail/group_stop.hpp>
#include <weft/detail/guard.hpp>
#include <weft/detail/late_start.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/detail/wrong_group_calls.hpp>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/semaphore.hpp>
#include <weft/submit_options.hpp>
#include <weft/task_group_options.hpp>
#include <weft/unlimited.hpp>
#include <weft/wait_group.hpp>

namespace weft {

// Like Go's errgroup, runs a group of tasks, all of which end before the group is destroyed. A task
// takes no argument, a std::stop_token, or the group's Context&. The first exception cancels the
// group's context, unless OnError::run_rest is set, and join() throws the exception. Tasks may
// start tasks. The group can be used again after join(), but a cancelled context stays cancelled.
//
// A group with a FiberPool runs its tasks in the pool; groups may share a pool. A spawn that the
// pool refuses throws std::system_error with the pool's error, and has no effect. If the pool or
// the task's options drop an accepted task, join() throws std::errc::operation_canceled, unless
// there is another exception. By default, a pool task frees its slot while it waits for the group.
// A stop request of the pool (close(Close::cancel), PoolOptions::stop) cancels the context if a
// running task takes the context or a token.
// Context: fibers and plain threads; join(), waits and the destructor park. All spawns except
// try_spawn() and spawn_after() park at the limit, or while the pool has no room.
// Throws: std::bad_alloc; spawns throw what go() or, with a pool, FiberPool::submit() throws.
// Ordering: spawn() synchronizes with the task's start, and the task's end with join()'s return.
class TaskGroup : private detail::WrongGroupCalls {
 public:
  // Makes the group's context a child of the caller's context, if there is one.
  // Throws: std::bad_alloc; std::invalid_argument if max_running is 0. All constructors throw both.
  explicit TaskGroup(const TaskGroupOptions& options = {})
      : TaskGroup(this_fiber::context(), options) {}
  // Makes the context a child of `parent`, whose end cancels the group. Null means no parent.
  explicit TaskGroup(const Context* parent, const TaskGroupOptions& options = {})
      : TaskGroup(detail::GroupPool(), parent, options) {}
  // Runs tasks in `pool`, which must outlive the group. The context is a child of the caller's.
  explicit TaskGroup(FiberPool& pool, const TaskGroupOptions& options = {})
      : TaskGroup(detail::group_pool(pool), this_fiber::context(), options) {}
  // Used by classes of the library that contain a group, with or without a pool.
  explicit TaskGroup(detail::GroupPool pool, const TaskGroupOptions& options = {})
      : TaskGroup(pool, this_fiber::context(), options) {}
  // Cancels the remaining tasks and waits for them. After 5 s, the destructor lists their fibers on
  // stderr, or all fibers if the group uses a pool. Drops exceptions that no join() has thrown.
  ~TaskGroup() {
    context_.cancel();
    if (running_.wait_until(Deadline::past())) return;
    detail::wait_at_end("the destructor of a TaskGroup", pool_ ? nullptr : &running_,
                        [this](Deadline deadline) noexcept { return wait_until(deadline); });
  }
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts a task. While `max_running` tasks are running, callers park in FIFO order. If the pool
  // then has no room, PoolOptions::on_full applies. A task of this or a nested group does not park
  // at the limit: the group queues the new task. When a task of the group ends, queued tasks run
  // before parked callers continue. A refused task is unchanged, unless moving it may throw.
  // Throws: whatever weft::go() or FiberPool::go() throws.
  template <detail::GroupTask F>
  void spawn(F&& task) {
    const Accepted accepted = spawn_or_refuse(std::forward<F>(task));
    if (accepted) return;
    WEFT_THROW(std::system_error(accepted.error, "weft::TaskGroup::spawn: refused by its pool"));
  }
  // Works like spawn(), but returns the pool's refusal instead of throwing it.
  template <detail::GroupTask F>
  Accepted spawn_or_refuse(F&& task) {
    return start(detail::Room::as_configured, {}, std::forward<F>(task));
  }
  // Works like spawn(), but requires a pool and takes options. A task's std::stop_token reports
  // stop requests from `options.stop`, the task's timeout, and the end of the group's context. The
  // options have no effect on a task that the group queues at its limit.
  // Throws: std::invalid_argument if there is no pool; whatever FiberPool::go() throws.
  template <detail::GroupTask F>
  void spawn(const SubmitOptions& options, F&& task) {
    const Accepted accepted = spawn_or_refuse(options, std::forward<F>(task));
    if (accepted) return;
    WEFT_THROW(std::system_error(accepted.error, "weft::TaskGroup::spawn: refused by its pool"));
  }
  // Works like spawn(), but returns the pool's refusal instead of throwing it.
  template <detail::GroupTask F>
  Accepted spawn_or_refuse(const SubmitOptions& options, F&& task) {
    return start_with(options, detail::Room::as_configured, {}, std::forward<F>(task));
  }
  // Starts a task without waiting. Returns Errc::full if `max_running` tasks are running, or an
  // error of FiberPool::try_submit().
  template <detail::GroupTask F>
  Accepted try_spawn(F&& task) {
    return start(detail::Room::now, {}, std::forward<F>(task));
  }
  // Works like try_spawn() above, but requires a pool and takes options; throws as spawn() does.
  template <detail::GroupTask F>
  Accepted try_spawn(const SubmitOptions& options, F&& task) {
    return start_with(options, detail::Room::now, {}, std::forward<F>(task));
  }
  // Starts a task; `until` limits the wait for room in the group and in the pool. Returns
  // Errc::timed_out or cancelled, or an error of FiberPool::submit_until(). If a task of this group
  // or of a nested group calls it while the group is full, the group queues the new task.
  template <detail::GroupTask F>
  Accepted spawn_until(const Until& until, F&& task) {
    return start(detail::Room::awaited, until, std::forward<F>(task));
  }
  // Works like spawn_until() above, but requires a pool and takes options; throws as spawn() does.
  template <detail::GroupTask F>
  Accepted spawn_until(const SubmitOptions& options, const Until& until, F&& task) {
    return start_with(options, detail::Room::awaited, until, std::forward<F>(task));
  }

  // Starts a task after `delay`, unless the group's context ends before the task can start. join()
  // waits for the task. Before it starts, the task does not count toward `max_running`. Does not
  // park. If the task cannot be started or the pool refuses it, join() throws the error.
  // Throws: whatever weft::go() throws.
  template <class Rep, class Period, detail::GroupTask F>
  void spawn_after(std::chrono::duration<Rep, Period> delay, F&& task) {
    running_.go([this, due = Deadline::after(delay),
                 late = std::decay_t<F>(std::forward<F>(task))]() mutable {
      WEFT_TRY { detail::start_late(*this, due, late); }
      WEFT_CATCH_ALL { keep(std::current_exception()); }
    });
  }
  // The compiler's errors for these overloads state which arguments a task must take.
  using WrongGroupCalls::spawn, WrongGroupCalls::spawn_or_refuse, WrongGroupCalls::try_spawn;
  using WrongGroupCalls::spawn_after, WrongGroupCalls::spawn_until;

  // Parks until every task has ended. Slots of the pool may remain in use a moment longer.
  // Throws: the first exception of a task; std::errc::operation_canceled if a task was dropped.
  void join() {
    wait();
    if (const Errors errors = take(); errors.first) std::rethrow_exception(errors.first);
  }
  // Parks until every task has ended; take_errors() returns the kept exceptions.
  void wait() noexcept {
    if (!pool_) return running_.wait();
    (void)wait_until({});
  }
  // Works like wait(), but returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept {
    if (running_.wait_until(Deadline::past())) return true;
    return pool_.wait_without_slot([&]() noexcept { return running_.wait_until(until); });
  }

  // Returns the tasks' context. The context ends when cancel() is called, its deadline passes, its
  // parent ends, the pool is asked to stop, or, without OnError::run_rest, a task throws.
  [[nodiscard]] Context& context() noexcept { return context_; }
  // Requests that all tasks stop; join() still waits for them.
  void cancel() noexcept { context_.cancel(); }
  // Returns and removes the kept exceptions, in the order of occurrence. Call it after wait().
  [[nodiscard]] std::vector<std::exception_ptr> take_errors() {
    Errors errors = take();
    if (errors.first) errors.others.insert(errors.others.begin(), errors.first);
    return std::move(errors.others);
  }

 private:
  static const TaskGroupOptions& checked(const TaskGroupOptions& options) {
    if (options.max_running > 0) return options;
    WEFT_THROW(
        std::invalid_argument("weft: TaskGroupOptions::max_running = 0; must be at least 1"));
  }
  // Storing the first exception allocates no memory; storing further exceptions does.
  struct Errors {
    std::exception_ptr first;
    std::vector<std::exception_ptr> others;
  };
  [[nodiscard]] Errors take() {
    const detail::Guard guard(mutex_);
    Errors errors = std::exchange(errors_, {});
    const bool has_dropped = dropped_.exchange(0, detail::relaxed) > 0;
    if (!errors.first && has_dropped) {
      const auto code = std::make_error_code(std::errc::operation_canceled);
      errors.first = std::make_exception_ptr(
          std::system_error(code, "weft::TaskGroup: its pool dropped a task before it began"));
    }
    return errors;
  }
  [[nodiscard]] bool has_plain_fibers() const noexcept {
    const SpawnOptions& fibers = options_.fibers;
    return fibers.stack_size == 0 && fibers.name.empty() && !fibers.pinned;
  }
  [[nodiscard]] bool is_limited() const noexcept { return options_.max_running != kUnlimited; }

  // Holds one unit of running_ and, until the task has ended, one of the group's permits.
  struct Place {
    explicit Place(TaskGroup& in_group) noexcept : group(&in_group) { in_group.running_.add(); }
    Place(Place&& other) noexcept
        : group(std::exchange(other.group, nullptr)), has_permit(other.has_permit) {}
    Place& operator=(Place&&) = delete;
    // This is the last access to the group.
    ~Place() {
      if (group == nullptr) return;
      if (has_permit && group->is_limited()) group->permits_.release();
      group->running_.done();
    }
    TaskGroup* group;
    bool has_permit = true;
  };
  // Holds a task and its Place. The task, its captures and a fiber's FiberLocals are destroyed
  // before the Place is released and a joiner continues. In a pool, fibers keep their FiberLocals.
  template <class F>
  class Member {
   public:
    using Shown = F;  // Dumps show this type instead of the wrapper.

    template <class G>
    Member(TaskGroup& group, G&& task) : place_(group), task_(std::forward<G>(task)) {}
    Member(Member&&) = default;
    Member& operator=(Member&&) = delete;
    ~Member() {
      if (place_.group != nullptr && task_) place_.group->count_unrun();
    }
    // The task must not have run.
    [[nodiscard]] F& task() noexcept { return *task_; }
    [[nodiscard]] const void* join_target() const noexcept { return &place_.group->running_; }
    void operator()() {
      TaskGroup& group = *place_.group;
      if (!group.is_limited()) return group.run_to_end(task_);
      group.queue_.add_runner();
      group.run_to_end(task_);
      while (const std::unique_ptr<detail::QueuedTask> queued = group.queue_.next()) queued->run();
      place_.has_permit = false;
    }

   private:
    Place place_;  // Destroyed last.
    std::optional<F> task_;
  };
  // Holds a task that a task of this or a nested group spawned when the group was at its limit.
  template <class F>
  struct Queued final : detail::QueuedTask {
    template <class G>
    Queued(TaskGroup& of, G&& given) : group(of), task(std::forward<G>(given)) {}
    void run() noexcept override { group.run_to_end(task); }

    TaskGroup& group;
    std::optional<F> task;
  };
  // Adds 1 to running_ while a task is being submitted, so joiners wait. Destroying an unrun task
  // adds 1 to dropped_. If the pool refused the task, ~Booking() subtracts this 1.
  class Booking {
   public:
    explicit Booking(TaskGroup& group) noexcept : group_(group) { group_.running_.add(); }
    ~Booking() {
      if (!is_accepted_) group_.dropped_.fetch_sub(1, detail::relaxed);
      group_.running_.done();
    }
    Booking(const Booking&) = delete;
    Booking& operator=(const Booking&) = delete;
    void accept() noexcept { is_accepted_ = true; }

   private:
    TaskGroup& group_;
    bool is_accepted_ = false;
  };

  TaskGroup(detail::GroupPool pool, const Context* parent, const TaskGroupOptions& options)
      : options_(checked(options)),
        pool_(pool),
        permits_(options.max_running),
        context_(parent, options.deadline) {}

  template <class F>
  Accepted start(detail::Room room, const Until& until, F&& task) {
    return start(room, until, std::forward<F>(task),
                 [&](detail::Task& member) { return pool_.submit(room, until, member); });
  }
  template <class F>
  Accepted start_with(const SubmitOptions& options, detail::Room room, const Until& until,
                      F&& task) {
    if (!pool_) {
      WEFT_THROW(std::invalid_argument("weft::TaskGroup::spawn: options without a pool"));
    }
    const auto submit = [&]<class G>(G&& given, const std::stop_source& own) {
      return start(room, until, std::forward<G>(given), [&](detail::Task& member) {
        return pool_.submit(options, own, room, until, member);
      });
    };
    return detail::submit_with_source(std::forward<F>(task), submit);
  }
  // Takes a permit and submits the task. If none is free, fails, waits or calls start_behind().
  template <class F, class Submit>
  Accepted start(detail::Room room, const Until& until, F&& task, Submit submit) {
    if (is_limited() && !permits_.try_acquire()) {
      if (room == detail::Room::now) return Errc::full;
      if (queue_.is_around_caller()) {
        return start_behind(until, std::forward<F>(task), submit);
      }
      if (!await_permit(until)) return until.reason();
    }
    return admit(std::forward<F>(task), submit);
  }
  // Queues the task if it can. Called by a task of this or a nested group if no permit is free.
  template <class F, class Submit>
  Accepted start_behind(const Until& until, F&& task, Submit submit) {
    using Push = detail::GroupQueue::Push;
    auto queued = std::make_unique<Queued<std::decay_t<F>>>(*this, std::forward<F>(task));
    std::decay_t<F>& own = *queued->task;
    std::unique_ptr<detail::QueuedTask> pushed = std::move(queued);
    const Push push = queue_.push(pushed);
    if (push == Push::queued) return {};
    const bool has_permit = push == Push::has_place || await_permit(until);
    const Accepted accepted = has_permit ? admit(std::move(own), submit) : Accepted(until.reason());
    if (!accepted) detail::give_back<F>(task, own);
    return accepted;
  }
  [[nodiscard]] bool await_permit(const Until& until) noexcept {
    return pool_.wait_without_slot([&]() noexcept { return permits_.try_acquire_until(until); });
  }
  // Submits a task; its Member takes over the caller's permit. `submit` passes the task to a pool.
  template <class F, class Submit>
  Accepted admit(F&& task, Submit submit) {
    using MemberOf = Member<std::decay_t<F>>;
    if (!pool_) {
      if (has_plain_fibers()) {
        go(MemberOf(*this, std::forward<F>(task)));
      } else {
        go(options_.fibers, MemberOf(*this, std::forward<F>(task)));
      }
      return {};
    }
    detail::Task member(MemberOf(*this, std::forward<F>(task)));
    Booking booking(*this);
    const Accepted accepted = submit(member);
    if (accepted) {
      booking.accept();
    } else {
      detail::give_back<F>(task, member.callable<MemberOf>().task());
    }
    return accepted;
  }
  void count_unrun() noexcept {
    if (pool_) dropped_.fetch_add(1, detail::relaxed);
  }

  // Runs `task`; called on the fiber of the task.
  template <class F>
  void run(F& task) {
    const ContextScope scope(context_);
    const detail::GroupScope of_group(queue_);
    [[maybe_unused]] const detail::PoolStopScope<F> pool_stop(pool_, context_);
    WEFT_TRY { (void)detail::invoke_in(context_, task); }
    WEFT_CATCH_ALL { keep(std::current_exception()); }
  }
  // Works like run(), then destroys the task and the FiberLocals of its fiber.
  template <class F>
  void run_to_end(std::optional<F>& task) {
    run(*task);
    task.reset();
    if (!pool_) detail::destroy_locals();
  }
  void keep(std::exception_ptr error) noexcept {
    {
      const detail::Guard guard(mutex_);
      if (!errors_.first) {
        errors_.first = error;
      } else if (options_.on_error == OnError::run_rest) {
        WEFT_TRY { errors_.others.push_back(error); }
        WEFT_CATCH_ALL {}
      }
    }
    if (options_.on_error == OnError::cancel_rest) context_.cancel(std::move(error));
  }

  const TaskGroupOptions options_;
  const detail::GroupPool pool_;  // Null: each task has a fiber.
  Semaphore permits_;
  detail::GroupQueue queue_{permits_};
  WaitGroup running_;
  // The number of accepted tasks that the pool dropped. Relaxed: readers wait for all tasks first.
  detail::Atomic<std::int64_t> dropped_{0};
  Mutex mutex_;
  Errors errors_ WEFT_GUARDED_BY(mutex_);
  Context context_;
};

}  // namespace weft
