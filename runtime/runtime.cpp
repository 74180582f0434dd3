#include <weft/runtime.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <weft/this_fiber.hpp>

#include "base/panic.hpp"
#include "io/poller.hpp"
#include "runtime/blocking/blocking_pool.hpp"
#include "runtime/config.hpp"
#include "runtime/dump.hpp"
#include "runtime/dump_signal.hpp"
#include "runtime/own_runtime.hpp"
#include "runtime/process_exit.hpp"
#include "runtime/stats.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"

namespace weft {

Runtime::Runtime(const RuntimeOptions& options)
    : events_(std::make_unique<io::Poller>()),
      blocking_(std::make_unique<runtime::BlockingPool>(options.max_blocking_threads)),
      scheduler_(std::make_unique<scheduler::Scheduler>(runtime::resolve(options, blocking_.get()),
                                                        *events_)),
      unwinding_(std::uncaught_exceptions()) {
  runtime::install_panic_dump();
  if (const int number = runtime::dump_signal_or(options.dump_signal); number != 0) {
    dump_signal_ = std::make_unique<runtime::DumpSignal>(number);
  }
}

namespace {

void check_is_not_lost(const scheduler::Scheduler& scheduler) noexcept {
  WEFT_CHECK(!scheduler.lost_in_fork(),
             "a Runtime was used in the child of a fork, which has none of its workers: make one "
             "there, or call exec");
}

}  // namespace

Runtime::~Runtime() {
  // This destructor waits for no fiber. Either no fiber is left, or the wait would never end,
  // because a fiber, or a helper thread's call for a fiber, ends the process.
  const bool is_inside = scheduler_->runs_on_this_thread() || blocking_->runs_on_this_thread();
  if (scheduler_->lost_in_fork() || (is_inside && runtime::called_by_exit())) {
    (void)scheduler_.release();
    (void)blocking_.release();
    (void)events_.release();
    (void)dump_signal_.release();
    return;
  }
  WEFT_CHECK(!scheduler_->runs_on_this_thread(),
             "a Runtime was destroyed by one of its own fibers, which it would wait for: let the "
             "thread that made it destroy it");
  scheduler_->begin_end();
  runtime::announce_end();
  await_end();
  scheduler_->retire();
}

// A program that seems to hang at its end gets a report. It comes soon if an exception unwinds the
// caller, because the handler of that exception may never be reached.
void Runtime::await_end() noexcept {
  const bool unwinds = std::uncaught_exceptions() > unwinding_;
  const auto patience = std::chrono::milliseconds(unwinds ? 100 : 5000);
  if (scheduler_->wait_end_until(Deadline::after(patience))) return;
  try {
    std::string text = "weft: ";
    if (unwinds) {
      text += "an exception ends the scope of a Runtime";
      if (!thrown_.empty()) text += " (" + thrown_ + ")";
      text += ", which waits for the fibers below; let them end, by a stop token for example\n";
    } else {
      text += "the end of a Runtime has waited for 5 s for the fibers below; let them end\n";
    }
    runtime::write_to_stderr(text + runtime::dump(*scheduler_, runtime::report_patience()));
  } catch (const std::bad_alloc&) {
    runtime::write_to_stderr("weft: the end of a Runtime waits for fibers that have not ended\n");
  }
}

void Runtime::note_exception() noexcept {
  try {
    throw;
  } catch (const std::exception& thrown) {
    try {
      thrown_ = thrown.what();
    } catch (const std::bad_alloc&) {
      thrown_.clear();  // The report omits it.
    }
  } catch (...) {
    thrown_ = "no std::exception";
  }
}

// Not inlined: dumps use the return address as the place of the spawn.
[[gnu::noinline]] void Runtime::spawn_here(detail::Task&& task, const SpawnOptions& options) {
  check_is_not_lost(*scheduler_);
  scheduler_->spawn(std::move(task), options, __builtin_return_address(0));
}

bool Runtime::wait_idle_until(Deadline deadline) {
  check_is_not_lost(*scheduler_);
  if (scheduler_->wait_idle_until(deadline)) return true;
  runtime::write_to_stderr(runtime::dump(*scheduler_, runtime::report_patience()));
  return false;
}

unsigned Runtime::workers() const noexcept { return scheduler_->shared().active().usual(); }

RuntimeStats Runtime::stats() const noexcept { return runtime::stats_of(*scheduler_); }

void Runtime::dump(std::ostream& out) const {
  out << runtime::dump(*scheduler_, Deadline::never());
}

void Runtime::trim() noexcept { scheduler_->shared().stores().trim(); }

RuntimeScope::RuntimeScope(Runtime& runtime) noexcept : binds_(!this_fiber::is_fiber()) {
  if (binds_) before_ = scheduler::bind_this_thread(runtime.scheduler_.get());
}

RuntimeScope::~RuntimeScope() {
  if (binds_) (void)scheduler::bind_this_thread(before_);
}

void dump_fibers(std::ostream& out) { out << runtime::dump_all(Deadline::never()); }

}  // namespace weft
