// Starts fibers.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>
#include <weft/detail/carrying_task.hpp>
#include <weft/detail/context_node.hpp>
#include <weft/detail/join_state.hpp>
#include <weft/detail/waist.hpp>
#include <weft/detail/wrong_callable.hpp>
#include <weft/error.hpp>
#include <weft/spawn_options.hpp>

namespace weft {

// Starts a detached fiber that runs `callable` once. If a plain thread calls go(), the fiber starts
// in the process's current Runtime. If `callable` throws, RuntimeOptions::on_exception gets the
// exception; without on_exception, the process ends before the fiber's stack unwinds. For an
// unnamed fiber, a nothrow-movable callable of up to 32 bytes needs no allocation. One of up to 64
// bytes needs a small memory block, which usually comes from a cache. go() does not check
// `callable`: an empty std::function throws in the fiber. The fiber begins without a context.
// Context: fibers and plain threads; does not park.
// Throws: std::system_error (Errc::no_runtime, too_many_fibers, invalid_stack_size), std::bad_alloc
// and what copying or moving `callable` throws. After an exception, no fiber has been started.
// Ordering: the call synchronizes with the start of `callable`.
template <std::invocable F>
void go(F&& callable) {
  detail::spawn(detail::Task(std::forward<F>(callable)));
}
template <std::invocable F>
void go(const SpawnOptions& options, F&& callable) {
  detail::spawn(detail::Task(std::forward<F>(callable)), options);
}

// Waits for one fiber and takes its result. The destructor and an assignment join a fiber that was
// neither joined nor detached, so that the fiber cannot outlive data that it uses. The fiber's
// result or exception is then dropped.
// Context: fibers and plain threads, one caller at a time; join(), waits, the destructor and
// assignment park.
// Ordering: the end of the fiber synchronizes with the return of join(), and of successful waits.
template <class T>
class JoinHandle {
 public:
  JoinHandle() noexcept = default;
  // Takes the fiber of `other`, which is then empty. No other call may be using either handle.
  JoinHandle(JoinHandle&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  // Joins the fiber of this handle, then takes the fiber of `other`, which is then empty.
  JoinHandle& operator=(JoinHandle&& other) noexcept {
    if (this != &other) {
      finish();
      state_ = std::exchange(other.state_, nullptr);
    }
    return *this;
  }
  // Joins the fiber and drops its result, unless join() or detach() was called. If an exception
  // unwinds the caller and this wait lasts 5 s, a report on stderr names the fiber.
  ~JoinHandle() { finish(); }

  // Returns whether there is a fiber to join; false after join() or detach().
  [[nodiscard]] bool joinable() const noexcept { return state_ != nullptr; }
  // Returns whether this handle refers to a fiber that has finished. If so, join() does not park.
  [[nodiscard]] bool done() const noexcept { return state_ != nullptr && state_->done(); }

  // Parks until the fiber has finished; returns its result or throws its exception. Requires
  // joinable(). A fiber that was spawned recently on the caller's worker, and has not started,
  // usually runs on the caller's stack without a switch. A spawn and a join are then nearly as fast
  // as a function call. Even then, the fiber has its own id, name and FiberLocal values.
  // Throws: what `callable` has thrown; what moving the result throws.
  T join() {
    state_->join_shared();
    const Release release{std::exchange(state_, nullptr)};
    return release.state->take();
  }

  // Waits for the end of the fiber; returns false if `until` ended the wait. Requires joinable().
  [[nodiscard]] bool wait_until(const Until& until) noexcept { return state_->wait_until(until); }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return wait_until(Deadline::after(duration));
  }

  // Returns the state that a select uses to wait for the fiber; null for an empty handle.
  [[nodiscard]] detail::JoinCore* core() const noexcept { return state_; }

  // Detaches the fiber, and drops its result or exception. Has no effect on an empty handle.
  void detach() noexcept { const Release release{std::exchange(state_, nullptr)}; }

 private:
  template <std::invocable F>
  friend auto spawn(const SpawnOptions& options, F&& callable)
      -> JoinHandle<std::invoke_result_t<std::decay_t<F>&>>;
  template <std::invocable F>
  friend auto spawn(F&& callable) -> JoinHandle<std::invoke_result_t<std::decay_t<F>&>>;

  using State = detail::JoinState<T>;
  // In a program without contexts, the check for a context costs one load and one untaken branch.
  template <class F>
  [[gnu::always_inline]] static detail::Task task_of(State* state, F&& callable) {
    using Callable = std::decay_t<F>;
    if (detail::ContextNode::may_have_one()) [[unlikely]]
      return detail::joinable_task_in_context<Callable, T>(state, std::forward<F>(callable));
    return detail::Task(std::in_place_type<detail::JoinableTask<Callable, T>>, state,
                        std::forward<F>(callable));
  }
  template <class F, class Spawn>
  [[gnu::always_inline]] static JoinHandle start(F&& callable, Spawn spawn_task) {
    Unstarted state{new State};
    spawn_task(task_of(state.state, std::forward<F>(callable)));
    return JoinHandle(std::exchange(state.state, nullptr));
  }
  struct Unstarted {
    State* state;
    ~Unstarted() { delete state; }
  };
  struct Release {
    State* state;
    ~Release() {
      if (state != nullptr && state->release_reference()) delete state;
    }
  };

  explicit JoinHandle(State* state) noexcept : state_(state) {}

  void finish() noexcept {
    if (state_ == nullptr) return;
    state_->join_at_end();
    detach();
  }

  State* state_ = nullptr;
};

// Starts a fiber as go() does, and returns its handle. If `callable` throws, join() rethrows the
// exception. The fiber has the caller's context, if there is one, and keeps it after detach(). The
// end of the context's scope cancels the context, even if the fiber is still running.
// Context, Throws, Ordering: the same as for go().
template <std::invocable F>
[[nodiscard]] auto spawn(const SpawnOptions& options, F&& callable)
    -> JoinHandle<std::invoke_result_t<std::decay_t<F>&>> {
  return JoinHandle<std::invoke_result_t<std::decay_t<F>&>>::start(
      std::forward<F>(callable),
      [&options](detail::Task&& task) { detail::spawn(std::move(task), options); });
}
template <std::invocable F>
[[nodiscard]] auto spawn(F&& callable) -> JoinHandle<std::invoke_result_t<std::decay_t<F>&>> {
  return JoinHandle<std::invoke_result_t<std::decay_t<F>&>>::start(
      std::forward<F>(callable), [](detail::Task&& task) { detail::spawn(std::move(task)); });
}

// The overloads below exist only for their error messages.
template <class F>
requires(!std::invocable<F>) void go(F&&) {
  static_assert(detail::kFits<F>, "weft::go: the callable must take no arguments");
}
template <class F>
requires(!std::invocable<F>) void go(const SpawnOptions&, F&&) {
  static_assert(detail::kFits<F>, "weft::go: the callable must take no arguments");
}
template <class F>
requires(!std::invocable<F>) JoinHandle<void> spawn(F&&) {
  static_assert(detail::kFits<F>, "weft::spawn: the callable must take no arguments");
  return {};
}
template <class F>
requires(!std::invocable<F>) JoinHandle<void> spawn(const SpawnOptions&, F&&) {
  static_assert(detail::kFits<F>, "weft::spawn: the callable must take no arguments");
  return {};
}

}  // namespace weft
