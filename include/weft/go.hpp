// Starting fibers.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <weft/detail/join_state.hpp>
#include <weft/detail/waist.hpp>
#include <weft/error.hpp>
#include <weft/spawn_options.hpp>

namespace weft {

// Starts a detached fiber that runs `callable` once. From fibers and plain threads; never parks.
// From a plain thread it goes to the process's current Runtime.
// An exception that leaves `callable` goes to RuntimeOptions::on_exception, or ends the process
// with the fiber's stack intact, as for std::thread.
// A callable of up to 32 bytes is kept in the fiber's record; one of up to 64 in a block that the
// worker has at hand, as a rule; a larger one is allocated.
// Throws std::system_error (Errc::no_runtime, too_many_fibers, invalid_stack_size), std::bad_alloc
// and what copying the callable throws; nothing has been started then.
// `callable` is not looked at before it is called: an empty std::function, say, is not refused, and
// its std::bad_function_call leaves the fiber as any other exception.
// Synchronizes: the call comes before the start of `callable`.
template <std::invocable F>
void go(F&& callable) {
  detail::spawn(detail::Task(std::forward<F>(callable)));
}
template <std::invocable F>
void go(const SpawnOptions& options, F&& callable) {
  detail::spawn(detail::Task(std::forward<F>(callable)), options);
}

// Waits for one fiber and takes its result. Move-only; used by one caller at a time, fiber or plain
// thread. Calls park, throw and synchronize where they say so. The end of the fiber synchronizes
// with the return of join(), and with waits that return true.
// Destroying or overwriting a handle that was neither joined nor detached joins first, so that
// what the fiber refers to stays alive; its result or exception is then dropped.
template <class T>
class JoinHandle {
 public:
  JoinHandle() noexcept = default;
  // `other` is empty then. No other call may be using either handle.
  JoinHandle(JoinHandle&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  // Joins what this handle had, as the destructor does; `other` is empty then.
  JoinHandle& operator=(JoinHandle&& other) noexcept {
    if (this != &other) {
      finish();
      state_ = std::exchange(other.state_, nullptr);
    }
    return *this;
  }
  // Joins, and so parks, unless join() or detach() was called; drops the result. When an exception
  // is on its way, and the wait lasts for 5 s, a report on stderr names the fiber.
  ~JoinHandle() { finish(); }

  // False after join() or detach(), and for a handle made empty.
  [[nodiscard]] bool joinable() const noexcept { return state_ != nullptr; }
  // True once the fiber has finished; joining will then not park. Never parks.
  [[nodiscard]] bool done() const noexcept { return state_ != nullptr && state_->done(); }

  // Parks until the fiber has finished; returns its result or throws its exception. Requires
  // joinable(). Call it from fibers and plain threads. The end of the fiber synchronizes with the
  // return. If it was spawned lately on the caller's worker and has not started, it runs right
  // here, on the caller's stack, which costs no switch: fork and join is nearly as fast as a call.
  // It is a fiber of its own nevertheless, with its own id, name and locals.
  T join() {
    state_->join_shared();
    const Release release{std::exchange(state_, nullptr)};
    return release.state->take();
  }

  // Parks until the fiber has finished; false when `until` ended the wait. Requires joinable().
  [[nodiscard]] bool wait_until(const Until& until) noexcept { return state_->wait_until(until); }
  // Waits as wait_until() does, for at most `duration`.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) noexcept {
    return wait_until(Deadline::after(duration));
  }

  // For a select; null for an empty handle.
  [[nodiscard]] detail::JoinCore* core() const noexcept { return state_; }

  // Lets the fiber go on alone; its result, or its exception, is dropped. Does nothing for an empty
  // handle. Never parks.
  void detach() noexcept { const Release release{std::exchange(state_, nullptr)}; }

 private:
  template <std::invocable F>
  friend auto spawn(const SpawnOptions& options, F&& callable)
      -> JoinHandle<std::invoke_result_t<std::decay_t<F>&>>;
  template <std::invocable F>
  friend auto spawn(F&& callable) -> JoinHandle<std::invoke_result_t<std::decay_t<F>&>>;

  using State = detail::JoinState<T>;
  template <class F, class Spawn>
  [[gnu::always_inline]] static JoinHandle start(F&& callable, Spawn spawn_task) {
    auto state = std::make_unique<State>();
    spawn_task(detail::JoinableTask<std::decay_t<F>, T>{state.get(), std::forward<F>(callable)});
    return JoinHandle(state.release());
  }
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

// Starts a fiber that can be joined. As go(), but an exception that leaves `callable` is kept for
// join().
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

}  // namespace weft
