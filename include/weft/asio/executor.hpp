// Provides an Asio executor that runs handlers as fibers, and a context for timers, sockets and
// other objects.
#pragma once

#include <weft/asio/detail/given_up.hpp>
#include <weft/asio/library.hpp>
// <weft/asio/library.hpp> selects the library.
#if defined(WEFT_ASIO_STANDALONE)
#include <asio/execution.hpp>
#else
#include <boost/asio/execution.hpp>
#endif
#include <chrono>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

namespace weft::asio {
inline namespace WEFT_ASIO_LIBRARY {

class Executor;

struct ContextOptions {
  // The stack size of the fibers that run handlers, in bytes. Asio's composed operations, above all
  // Beast's, need a larger stack than the default.
  std::size_t stack_size = 256UL * 1024;
};

// Provides the executor for Asio's objects. The program need not run an io_context:
//
//   weft::asio::Context context;
//   boost::asio::steady_timer timer(context.get_executor(), 10ms);
//   timer.async_wait(weft::asio::use_fiber);         // Parks the calling fiber, or
//   timer.async_wait([](auto error) { ... });        // runs the handler as a fiber of its own.
//
// An Asio thread, which starts with the first I/O object (such as a timer), collects the events.
// The thread spawns handlers in the runtime that plain threads use. This runtime must therefore
// outlive the context, as it does in run(). Asio's objects and the fibers that use them must end
// before the context. The destructor waits until all handlers have ended and been destroyed.
// Context: fibers and plain threads; the destructor and waits park.
// Throws: std::bad_alloc.
class Context : public lib::execution_context {
 public:
  using executor_type = Executor;

  // Makes a context. It does not start a thread yet.
  explicit Context(const ContextOptions& options = {}) : stack_size_(options.stack_size) {}
  // Abandons pending operations without calling their handlers, and waits for running handlers.
  // Waits with use_fiber in these handlers end with operation_aborted; operations that the handlers
  // begin are abandoned within 100 ms. A handler must not begin an operation while Asio shuts its
  // services down, or use a resolver after that, because Asio supports neither. A handler must not
  // destroy its context.
  ~Context() {
    do {
      give_up();
    } while (!handlers_.wait_until(std::chrono::milliseconds(100)));
    give_up();  // Abandons operations that the last handlers began, while the services still exist.
    destroy();
    outstanding_.wait();
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Returns the executor.
  [[nodiscard]] Executor get_executor() noexcept;

  // Parks until no handler is queued or running, no operation is pending, and no work guard exists.
  // Returns false if `until` ended the wait. A handler must not call this function.
  [[nodiscard]] bool wait_until(const Until& until) noexcept {
    return outstanding_.wait_until(until);
  }
  // Waits as wait_until() does, without a limit.
  void wait() noexcept { (void)wait_until({}); }

 private:
  friend class Executor;

  // Counts a handler, from its submission until its captures are destroyed.
  class Running {
   public:
    explicit Running(Context& context) noexcept : handlers_(&context.handlers_) {
      handlers_->add();
    }
    Running(Running&& other) noexcept : handlers_(std::exchange(other.handlers_, nullptr)) {}
    Running& operator=(Running&&) = delete;
    ~Running() {
      if (handlers_ != nullptr) handlers_->done();
    }

   private:
    WaitGroup* handlers_;
  };

  void give_up() {
    const detail::GivenUp told_at_the_end;
    shutdown();
  }

  const std::size_t stack_size_;
  WaitGroup handlers_;     // The handlers that are queued or running.
  WaitGroup outstanding_;  // Handlers, and executors of pending operations or work guards.
};

// Models Asio's executors; functions run as fibers of the runtime. In a fiber, dispatch() and
// similar calls run functions in place; post() and defer() never do. A handler's exception is
// treated like an exception of a fiber: see RuntimeOptions::on_exception. Handlers run
// concurrently. An object with several pending operations needs an asio::strand, as on a
// thread_pool. Code in a strand must not park, because the strand belongs to a thread while the
// code runs. A fiber that waits with use_fiber does not occupy the strand.
// Context: any thread; a call parks only if it runs a parking function in place.
// Throws: std::bad_alloc.
class Executor {
 public:
  // Refers to the same context.
  Executor(const Executor& other) noexcept
      : Executor(*other.context_, other.blocking_, other.tracked_) {}
  Executor(Executor&& other) noexcept
      : Executor(*other.context_, other.blocking_, other.tracked_) {}
  // Refers to the same context.
  Executor& operator=(const Executor& other) noexcept {
    // add() comes before done(), so that the count does not reach 0 in between.
    if (other.tracked_) other.context_->outstanding_.add();
    if (tracked_) context_->outstanding_.done();
    context_ = other.context_;
    blocking_ = other.blocking_;
    tracked_ = other.tracked_;
    return *this;
  }
  // Ends the executor's outstanding work, if the work is tracked.
  ~Executor() {
    if (tracked_) context_->outstanding_.done();
  }

  // Each overload returns the property that its parameter's type names, such as the context.
  [[nodiscard]] Context& query(lib::execution::context_t /*what*/) const noexcept {
    return *context_;
  }
  [[nodiscard]] lib::execution::blocking_t query(
      lib::execution::blocking_t /*what*/) const noexcept {
    return blocking_;
  }
  [[nodiscard]] lib::execution::outstanding_work_t query(
      lib::execution::outstanding_work_t /*what*/) const noexcept {
    if (tracked_) return lib::execution::outstanding_work.tracked;
    return lib::execution::outstanding_work.untracked;
  }
  // Returns a copy of the executor with the given property.
  [[nodiscard]] Executor require(lib::execution::blocking_t::possibly_t how) const noexcept {
    return Executor(*context_, how, tracked_);
  }
  [[nodiscard]] Executor require(lib::execution::blocking_t::never_t how) const noexcept {
    return Executor(*context_, how, tracked_);
  }
  [[nodiscard]] Executor require(
      lib::execution::outstanding_work_t::tracked_t /*how*/) const noexcept {
    return Executor(*context_, blocking_, true);
  }
  [[nodiscard]] Executor require(
      lib::execution::outstanding_work_t::untracked_t /*how*/) const noexcept {
    return Executor(*context_, blocking_, false);
  }

  // Runs `function` as a fiber, or in place if the caller is a fiber and `blocking` is `possibly`.
  // Throws: whatever weft::go() throws or, in place, whatever copying or calling `function` throws.
  // Ordering: the call synchronizes with the start of `function`.
  template <class F>
  void execute(F&& function) const {
    const lib::execution::blocking_t possibly = lib::execution::blocking.possibly;
    if (blocking_ == possibly && weft::this_fiber::id() != 0) {
      std::decay_t<F> here(std::forward<F>(function));
      here();
      return;
    }
    weft::go(
        {.stack_size = context_->stack_size_, .name = "asio handler"},
        Handler<std::decay_t<F>>{Context::Running(*context_), Executor(*context_, blocking_, true),
                                 std::forward<F>(function)});
  }

  friend bool operator==(const Executor& a, const Executor& b) noexcept {
    return a.context_ == b.context_ && a.blocking_ == b.blocking_ && a.tracked_ == b.tracked_;
  }
  friend bool operator!=(const Executor& a, const Executor& b) noexcept { return !(a == b); }

 private:
  friend class Context;

  template <class F>
  struct Handler;

  Executor(Context& context, lib::execution::blocking_t blocking, bool tracked) noexcept
      : context_(&context), blocking_(blocking), tracked_(tracked) {
    if (tracked_) context_->outstanding_.add();
  }

  Context* context_;
  lib::execution::blocking_t blocking_;
  bool tracked_;  // Whether the context's outstanding_ counts this executor.
};

// Members are destroyed in reverse order: first the function, then the counts. The function must be
// destroyed first, because the context may be destroyed once both counts are 0.
template <class F>
struct Executor::Handler {
  Context::Running running;
  Executor work;
  F function;
  void operator()() { std::move(function)(); }
};

inline Executor Context::get_executor() noexcept {
  return Executor(*this, lib::execution::blocking.possibly, false);
}

}  // namespace WEFT_ASIO_LIBRARY
}  // namespace weft::asio
