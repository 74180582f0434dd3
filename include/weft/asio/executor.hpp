// An executor of Asio's by which handlers run as fibers, and the context for its timers, sockets,
// signals and resolvers.
#pragma once

#include <weft/asio/detail/given_up.hpp>
#include <weft/asio/library.hpp>
// The library is chosen above.
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
  // The stack size of fibers that run handlers, in bytes. Asio's composed operations, Beast's above
  // all, have more on the stack than fibers are given as a rule.
  std::size_t stack_size = 256UL * 1024;
};

// The executor that Asio's objects stand on, instead of an io_context that the program has to run:
//
//   weft::asio::Context context;
//   boost::asio::steady_timer timer(context.get_executor(), 10ms);
//   timer.async_wait(weft::asio::use_fiber);         // Parks the calling fiber, or
//   timer.async_wait([](auto error) { ... });        // runs the handler as a fiber of its own.
//
// Asio's events are collected by one thread of Asio's own, which begins with the first object that
// needs it, and runs nothing else. Handlers are spawned from there to the runtime that plain
// threads spawn to: so the context lives while that runtime does, within run(), say.
// Asio's objects must be gone before their context, and so must every fiber that uses them. But the
// end of the context waits for its handlers, with what they have on their stacks. Call it from
// fibers and plain threads; calls park, throw and synchronize where they say so.
class Context : public lib::execution_context {
 public:
  using executor_type = Executor;

  // Never parks, and starts nothing yet.
  explicit Context(const ContextOptions& options = {}) : stack_size_(options.stack_size) {}
  // Operations that are under way are given up, without a call of their handlers. Handlers that run
  // are waited for: what they wait for by use_fiber is operation_aborted, and what they begin until
  // their end is given up, too, within 100 ms. Asio's services bear no operations that begin in the
  // very moment in which they end, and its resolvers none later.
  // Parks; call it from fibers and plain threads, but not from a handler.
  ~Context() {
    do {
      give_up();
    } while (!handlers_.wait_until(std::chrono::milliseconds(100)));
    give_up();  // Operations begun by the last handlers; their services must be there still.
    destroy();
    outstanding_.wait();
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Call it from anywhere; never parks.
  [[nodiscard]] Executor get_executor() noexcept;

  // Parks until no handler runs and no operation is under way; false when `until` ended the wait.
  // Call it from fibers and plain threads, but not from a handler.
  [[nodiscard]] bool wait_until(const Until& until) noexcept {
    return outstanding_.wait_until(until);
  }
  // The same without a limit.
  void wait() noexcept { (void)wait_until({}); }

 private:
  friend class Executor;

  // A handler, for as long as it and what it holds are there.
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
  WaitGroup handlers_;     // Handlers that run, or will.
  WaitGroup outstanding_;  // Handlers, and executors that stand for operations under way.
};

// A model of Asio's executors: what it executes is a fiber of the runtime. From a fiber, dispatch()
// and its like call in place; post() and defer() never do. An exception that leaves a handler is
// one that leaves a fiber: see RuntimeOptions::on_exception.
// Several handlers run at the same time. Handlers of one object that has several operations under
// way belong into one asio::strand, as on a thread_pool. What runs in a strand must not park, as
// the strand is a thread's while it runs. Fibers that wait by use_fiber do so outside of it. Call
// it from anywhere; calls park, throw and synchronize where they say so.
class Executor {
 public:
  // Call it from anywhere, as all of its calls; a copy stands for the same context.
  Executor(const Executor& other) noexcept
      : Executor(*other.context_, other.blocking_, other.tracked_) {}
  Executor(Executor&& other) noexcept
      : Executor(*other.context_, other.blocking_, other.tracked_) {}
  // Works as the copy constructor does.
  Executor& operator=(const Executor& other) noexcept {
    // The new work before the old one ends: the count must not touch 0 between.
    if (other.tracked_) other.context_->outstanding_.add();
    if (tracked_) context_->outstanding_.done();
    context_ = other.context_;
    blocking_ = other.blocking_;
    tracked_ = other.tracked_;
    return *this;
  }
  // Ends the work that it stands for, if it is tracked.
  ~Executor() {
    if (tracked_) context_->outstanding_.done();
  }

  // Asio's properties: which context, whether it may call in place, whether it stands for work.
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
  // The same executor with another property. Never parks.
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

  // Call it from fibers and plain threads; never parks. Throws what spawn() does. Synchronizes:
  // the call comes before the start of `function`.
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
  bool tracked_;  // Whether it is one of the context's outstanding_.
};

// Members go in reverse order: first the function, then what stands for it; with the last of them
// the context may go.
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
