#include "runtime/config.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <weft/detail/first_use.hpp>
#include <weft/detail/stall_listener.hpp>
#include <weft/pool_options.hpp>

#include "base/cgroups.hpp"
#include "base/lock_owners.hpp"
#include "base/thread.hpp"
#include "runtime/dump.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/worker/current_worker.hpp"

namespace weft::runtime {

namespace {

// Diverts each locking call from its fast path.
// Relaxed: a worker that does not see the value yet sees it by its next turn.
void note_lock_owners() noexcept {
  if (base::lock_owners_are_noted.exchange(true, detail::relaxed)) return;
  weft_endless_turn.over.store(true, detail::relaxed);
  (void)scheduler::visit_registry(Deadline::never(), [](scheduler::Scheduler& scheduler) {
    for (scheduler::Desk* desk : scheduler.shared().desks()) desk->end_turn();
  });
}

// Appended piece by piece: g++ 12 warns falsely about sums of strings (its bug 105651).
[[noreturn]] void refuse(const char* option, const std::string& value, std::size_t most,
                         const char* least = "0, which leaves it to the runtime,") {
  std::string what(option);
  what.append(" = ").append(value).append("; must be a number from ").append(least);
  what.append(" to ").append(std::to_string(most));
  throw std::invalid_argument(what);
}

}  // namespace

unsigned parse_workers(const char* text) {
  unsigned workers = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, workers);
  if (error != std::errc{} || stop != end || workers == 0 || workers > kMaxWorkers) {
    refuse("the environment's WEFT_WORKERS", text, kMaxWorkers, "1");
  }
  return workers;
}

namespace {

// Returns 0 if the number of workers is that of the usable processors.
unsigned resolve_workers(unsigned asked) {
  if (asked > kMaxWorkers) {
    refuse("RuntimeOptions::workers", std::to_string(asked), kMaxWorkers);
  }
  if (asked != 0) return asked;
  const char* text = std::getenv("WEFT_WORKERS");
  return text != nullptr ? parse_workers(text) : 0;
}

unsigned resolve_size_class(std::size_t bytes) {
  if (bytes == 0) return fibers::kDefaultSizeClass;
  const unsigned size_class = fibers::size_class_of(bytes);
  if (size_class < fibers::kStackSizes) return size_class;
  refuse("RuntimeOptions::stack_size", std::to_string(bytes), fibers::kLargestStack);
}

}  // namespace

namespace {

// Returns the result of `describe`, which it stores in `described`; `otherwise` if memory is short.
template <class Describe>
std::string_view description(std::string& described, Describe describe,
                             std::string_view otherwise) {
  try {
    described = describe();
    return described;
  } catch (const std::bad_alloc&) {
    return otherwise;
  }
}

// Runs on a worker's own stack, which has room for names of any length.
void report_deadlock(const std::function<void(std::string_view)>& handler,
                     scheduler::Scheduler& scheduler) {
  std::string described;
  const std::string_view report = description(
      described, [&] { return describe_deadlock(scheduler); },
      "weft: deadlock, and no memory for its report\n");
  if (handler) {
    handler(report);
    return;
  }
  write_to_stderr(report);
  scheduler::make_core_small();
  std::abort();
}

}  // namespace

namespace {

void report_cycle(const scheduler::WaitCycle& cycle,
                  const std::function<void(std::string_view)>& handler) {
  std::string described;
  const std::string_view text = description(
      described, [&] { return describe_cycle(cycle); },
      "weft: fibers wait for each other, and no memory for the report\n");
  handler ? handler(text) : write_to_stderr(text);
}

// Writes at most one line a second for the whole process.
void report_stall(const scheduler::Stall& stall, bool wants_calls) {
  static detail::Atomic<std::int64_t> next{0};
  const std::int64_t now = Deadline::now_nanoseconds();
  std::int64_t due = next.load(detail::relaxed);
  // Relaxed: only the number of lines depends on it.
  if (now < due ||
      !next.compare_exchange_strong(due, now + 1'000'000'000, detail::relaxed, detail::relaxed)) {
    return;
  }
  try {
    const fibers::Backtrace calls = wants_calls ? stall.calls() : fibers::Backtrace();
    write_to_stderr(describe_stall(stall, calls).append("\n"));
  } catch (const std::bad_alloc&) {
    // A failed report must not end the process. The stall is counted in any case.
  }
}

[[noreturn]] void refuse_time(const char* option, std::chrono::nanoseconds time) {
  std::string what(option);
  what.append(" = ").append(std::to_string(time.count())).append(" ns; must be at least 1 ms");
  throw std::invalid_argument(what);
}

// Serves the process's listener, which libraries may also install after runtimes have begun.
void listen_to_blocked(scheduler::MonitorOptions& monitor, bool wants_calls) {
  monitor.on_blocked = [wants_calls](const scheduler::Stall& stall) -> std::uint64_t {
    const detail::StallListener* listener = detail::stall_listener();
    if (listener == nullptr || !listener->is_of_interest(stall.fiber)) return 0;
    const fibers::Backtrace calls = wants_calls ? stall.calls() : fibers::Backtrace();
    return listener->begin({calls.frames.data(), calls.count}, stall.lasted);
  };
  monitor.on_continued = [](std::uint64_t number, std::chrono::nanoseconds more) {
    detail::stall_listener()->end(number, more);
  };
}

scheduler::MonitorOptions resolve_monitor(const RuntimeOptions& options) {
  constexpr auto kShortest = std::chrono::milliseconds(1);
  if (options.turn < kShortest) {
    refuse_time("RuntimeOptions::turn", options.turn);
  }
  if (options.stall < kShortest) {
    refuse_time("RuntimeOptions::stall", options.stall);
  }
  if (options.max_spare_workers > kMaxWorkers) {
    refuse("RuntimeOptions::max_spare_workers", std::to_string(options.max_spare_workers),
           kMaxWorkers, "0");
  }
  scheduler::MonitorOptions monitor{options.monitor, options.turn, options.stall,
                                    options.max_spare_workers};
  monitor.on_cycle = [handler = options.on_partial_deadlock](const scheduler::WaitCycle& cycle) {
    report_cycle(cycle, handler);
  };
  listen_to_blocked(monitor, options.stall_calls);
  if (!options.on_stall) {
    monitor.on_stall = [wants_calls = options.stall_calls](const scheduler::Stall& stall) {
      report_stall(stall, wants_calls);
    };
    return monitor;
  }
  monitor.report_after = options.stall;
  monitor.on_stall = [handler = options.on_stall,
                      wants_calls = options.stall_calls](const scheduler::Stall& stall) {
    const fibers::Backtrace calls = wants_calls ? stall.calls() : fibers::Backtrace();
    const bool is_blocked = stall.kind == scheduler::Stall::Kind::blocked;
    std::string described;
    const std::string_view text = description(
        described, [&] { return describe_stall(stall, calls); },
        "weft: a worker is stuck in one fiber, and no memory for the report");
    handler({is_blocked ? StallReport::Kind::blocked : StallReport::Kind::busy,
             stall.worker,
             stall.lasted,
             text,
             {calls.frames.data(), calls.count}});
  };
  return monitor;
}

// Returns 0 for no goal.
std::size_t resolve_memory_goal(const RuntimeOptions& options) {
  if (options.memory_goal == std::numeric_limits<std::size_t>::max() || !options.monitor) return 0;
  if (options.memory_goal != 0) return options.memory_goal;
  // One eighth of the limit is left for page tables, the kernel's own memory, and fibers that start
  // between two samples.
  const std::size_t limit = base::Cgroups().memory();
  return limit - limit / 8;
}

}  // namespace

scheduler::SchedulerOptions resolve(const RuntimeOptions& options, scheduler::Helpers* helpers) {
  if (options.max_fibers == 0) {
    throw std::invalid_argument("weft: RuntimeOptions::max_fibers = 0; must be at least 1");
  }
  if (options.max_blocking_threads == 0) {
    throw std::invalid_argument(
        "weft: RuntimeOptions::max_blocking_threads = 0; must be at least 1");
  }
  const char* owners = std::getenv("WEFT_LOCK_OWNERS");
  if (options.lock_owners || (owners != nullptr && std::string_view(owners) == "1")) {
    note_lock_owners();
  }
  unsigned workers = resolve_workers(options.workers);
  scheduler::ProcessorOptions processors;
  if (workers == 0) {
    workers = std::min(base::usable_processors(), kMaxWorkers);
    processors.most_workers = std::min(base::online_processors(), kMaxWorkers);
  }
  return {workers,
          processors,
          resolve_size_class(options.stack_size),
          options.max_fibers,
          options.on_exception,
          options.report_overflow,
          helpers,
          [handler = options.on_deadlock](scheduler::Scheduler& scheduler) {
            report_deadlock(handler, scheduler);
          },
          resolve_monitor(options),
          nullptr,
          options.refuse_without_stacks,
          resolve_memory_goal(options),
          options.memory_goal != 0};
}

}  // namespace weft::runtime

namespace weft::detail {

std::size_t processors() noexcept { return computed_once<&base::usable_processors>(); }

}  // namespace weft::detail
