#include "runtime/dump.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>
#include <weft/this_fiber.hpp>

#include "base/lock_owners.hpp"
#include "base/panic.hpp"
#include "base/printable.hpp"
#include "base/thread.hpp"
#include "runtime/other_thread.hpp"
#include "runtime/symbols.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/upkeep/census.hpp"

namespace weft::runtime {

namespace {

using detail::relaxed;
using fibers::Fiber;
using fibers::FiberState;
using scheduler::Scheduler;

// A longer list is of little use, and the heading has the total.
constexpr std::size_t kMostLines = 200;

void append_state(const Fiber& fiber, std::chrono::nanoseconds age, std::string& text) {
  switch (fiber.state.load(relaxed)) {
    case FiberState::free:
      text.append(" has ended");
      break;
    case FiberState::ready:
      text.append(" is ready");
      break;
    case FiberState::running:
      text.append(" is running");
      break;
    case FiberState::parked:
      text.append(" is parked: ");
      text.append(to_string(static_cast<detail::WaitReason>(fiber.reason())));
      break;
    case FiberState::inlining:
      text.append(" waits for one that runs on its stack: ");
      text.append(to_string(static_cast<detail::WaitReason>(fiber.reason())));
      break;
  }
  if (age > std::chrono::nanoseconds(0)) text.append(", for ").append(describe_age(age));
}

// Appends the id and the name of a fiber that has started. Relaxed: the values may be old.
void append_identity(const fibers::Stack& stack, std::string& text) {
  text.append(std::to_string(stack.fiber_id.load(relaxed)));
  text.append(" '").append(stack.name.printable_copy().data()).append("'");
}

// Relaxed throughout: a dump shows values that may be old. A fiber may end meanwhile, and its stack
// may be given back. Memory of stacks stays mapped, so at worst the dump shows a 0 or another
// fiber's name. For an inlined fiber, the dump may show data that the parent has since written
// there.
void append_fiber(const Fiber& fiber, std::chrono::nanoseconds age, std::string& text) {
  text.append("  fiber ");
  const fibers::Stack* stack = fiber.stack.load(detail::acquire);  // [bound]
  std::string identity("(not started)");
  if (stack != nullptr) {
    identity.clear();
    append_identity(*stack, identity);
    const bool is_the_same = fiber.stack.load(detail::acquire) == stack;  // [bound]
    if (!is_the_same) identity = "(just ended)";
  }
  text.append(identity);
  append_state(fiber, age, text);
  if (const std::type_info* const type = fiber.task.type_hint()) {
    text.append("; runs ").append(describe_type(*type));
  }
  if (const void* site = fiber.site_hint()) {
    // The call precedes its return address.
    text.append("; spawned at ").append(describe_address(static_cast<const char*>(site) - 1));
  }
  text.append("\n");
}

void append_calls(const fibers::Backtrace& trace, std::string& text) {
  for (std::size_t i = 0; i < trace.count; ++i) {
    // A call precedes its return address.
    text.append("    at ");
    text.append(describe_address(static_cast<const char*>(trace.frames[i]) - 1)).append("\n");
  }
}

void append_fiber_and_calls(const Fiber& fiber, std::chrono::nanoseconds age, std::string& text) {
  append_fiber(fiber, age, text);
  fibers::Stack* stack = fiber.stack.load(detail::acquire);  // [bound]
  // The calls of a parent are below its inlined child's.
  const FiberState state = fiber.state.load(relaxed);
  if (stack == nullptr || (state != FiberState::parked && state != FiberState::ready)) return;
  append_calls(fibers::backtrace_of(*stack), text);
}

using Append = void (*)(const Fiber&, std::chrono::nanoseconds age, std::string&);

// Calls add(fiber, age) for the first kMostLines fibers that are `wanted`. Returns how many are
// wanted; nothing if `patience` ended before the lock of the records was free.
template <class Wanted, class Add>
std::optional<std::size_t> add_fibers(Scheduler& scheduler, Deadline patience, Wanted wanted,
                                      Add add) {
  const std::int64_t now = Deadline::now_nanoseconds();
  std::size_t count = 0;
  const bool listed = scheduler.shared().fibers().for_each_until(patience, [&](const Fiber& fiber) {
    if (fiber.state.load(relaxed) != FiberState::free && wanted(fiber) && ++count <= kMostLines) {
      add(fiber, scheduler::age_of(fiber, scheduler.shared(), now));
    }
    return true;
  });
  return listed ? std::optional(count) : std::nullopt;
}

// Adds the calls of running fibers once the records' lock has been released, because each answer of
// a computing thread takes milliseconds.
class RunningFibers {
 public:
  // The line about the fiber ends at this position of the text.
  void note(const Fiber& fiber, const Scheduler& scheduler, std::size_t line_end) {
    if (fiber.state.load(relaxed) != FiberState::running) return;
    for (const scheduler::Desk* desk : scheduler.shared().desks()) {
      if (desk->recorder.running() != &fiber) continue;
      lines_.push_back({desk, desk->recorder.counters().switches.get(), line_end});
    }
  }
  // Returns the calls of a desk's fiber, unless the desk's count of switches has grown.
  static fibers::Backtrace calls_at(const scheduler::Desk& desk, std::uint64_t switches,
                                    Scheduler& scheduler) noexcept {
    return scheduler::Stall{
        .stuck = &desk, .switches = switches, .stacks = &scheduler.shared().stacks().space()}
        .calls();
  }
  // Inserts the calls of each fiber that still runs, until `patience` ends.
  void insert_calls(Scheduler& scheduler, Deadline patience, std::string& text) const {
    for (auto line = lines_.rbegin(); line != lines_.rend() && !patience.passed(); ++line) {
      std::string calls;
      append_calls(calls_at(*line->desk, line->switches, scheduler), calls);
      text.insert(line->end, calls);
    }
  }

 private:
  struct Line {
    const scheduler::Desk* desk;
    std::uint64_t switches;
    std::size_t end;
  };
  std::vector<Line> lines_;
};

using Requests = std::unordered_map<std::uint64_t, RequestText>;

// Inserts the request into the fiber's line, which begins at position `line` of the text.
void insert_request(const Fiber& fiber, const Requests& requests, std::size_t line,
                    std::string& text) {
  const fibers::Stack* stack = fiber.stack.load(detail::acquire);  // [bound]
  if (stack == nullptr || requests.empty()) return;
  const auto found = requests.find(stack->fiber_id.load(relaxed));
  if (found != requests.end()) text.insert(text.find('\n', line), "; " + found->second.text);
}

std::string compose(Scheduler& scheduler, Deadline patience, const Requests& requests,
                    Append append = &append_fiber) {
  std::string text("weft: ");
  text.append(std::to_string(scheduler.shared().live())).append(" fibers on ");
  const std::size_t workers = scheduler.shared().desks().size();
  const std::size_t active = scheduler.shared().active().at_work();
  text.append(std::to_string(workers)).append(" workers");
  if (active < workers)
    text.append(", of which ").append(std::to_string(active)).append(" take part");
  text.append("\n");
  const auto all = [](const Fiber&) { return true; };
  RunningFibers running;
  const auto add = [&](const Fiber& fiber, std::chrono::nanoseconds age) {
    const std::size_t line = text.size();
    append(fiber, age, text);
    insert_request(fiber, requests, line, text);
    running.note(fiber, scheduler, text.size());
  };
  const std::optional<std::size_t> count = add_fibers(scheduler, patience, all, add);
  if (!count) {
    text.append("  they cannot be listed: the lock of their records is held\n");
  } else if (*count > kMostLines) {
    text.append("  and ").append(std::to_string(*count - kMostLines)).append(" more\n");
  }
  running.insert_calls(scheduler, report_patience(), text);
  return text;
}

// A fiber's record has a digest of its join target, which can be read while the fiber ends. A few
// other fibers may have the same digest.
void append_targeted(Scheduler& scheduler, std::uint8_t digest, Deadline patience,
                     std::string& text) {
  const auto is_targeted = [digest](const Fiber& fiber) {
    return fiber.target_digest.load(relaxed) == digest;
  };
  // If in doubt, the caller lists all fibers.
  (void)add_fibers(
      scheduler, patience, is_targeted,
      [&](const Fiber& fiber, std::chrono::nanoseconds age) { append_fiber(fiber, age, text); });
}

std::string compose_all(Deadline patience, const Requests& requests) {
  std::string text;
  const bool listed = scheduler::visit_registry(
      patience, [&](Scheduler& scheduler) { text.append(compose(scheduler, patience, requests)); });
  if (!listed) text.append("weft: no list of fibers: a runtime is being made or destroyed\n");
  return text;
}

// Demangling a name takes kilobytes of stack. A separate thread has that much stack; a fiber may
// not.
std::string with_enough_stack(const std::function<std::string()>& compose_text) {
  if (!this_fiber::is_fiber()) return compose_text();
  return OtherThread<std::string>([&](const std::stop_token&) { return compose_text(); }).result();
}

void report_refusal(const std::exception& refusal) noexcept {
  write_to_stderr("weft: the fibers cannot be listed: ");
  write_to_stderr(refusal.what());
  write_to_stderr("\n");
}

void write_report(Deadline patience, const Requests& requests) noexcept {
  try {
    write_to_stderr(compose_all(patience, requests));
  } catch (const std::exception& refusal) {
    report_refusal(refusal);
  }
}

// It runs on a separate thread and names no requests: the current request may hold any lock.
void dump_after_panic() noexcept {
  try {
    std::thread([] { write_report(report_patience(), {}); }).join();
  } catch (const std::exception& refusal) {
    report_refusal(refusal);
  }
  scheduler::make_core_small();
}

}  // namespace

Deadline report_patience() noexcept { return Deadline::after(std::chrono::milliseconds(100)); }

std::string dump(Scheduler& scheduler, Deadline patience) {
  return with_enough_stack(
      [&] { return compose(scheduler, patience, describe_requests(patience)); });
}

std::string describe_deadlock(Scheduler& scheduler) {
  return "weft: deadlock: every fiber waits for another, and no thread is left to wake one\n" +
         describe_calls(scheduler);
}

std::string describe_calls(Scheduler& scheduler) {
  return compose(scheduler, report_patience(), {}, &append_fiber_and_calls);
}

std::string describe_cycle(const scheduler::WaitCycle& cycle) {
  const std::size_t count = cycle.members.size();
  std::string text("weft: deadlock: ");
  text.append(count == 1 ? "a fiber waits for itself"
                         : std::to_string(count) + " fibers wait for each other, in a circle");
  text.append("; others live\n");
  for (std::size_t i = 0; i < count && i < kMostLines; ++i) {
    const scheduler::WaitCycle::Member& member = cycle.members[i];
    append_fiber(*member.fiber, member.age, text);
    text.back() = ';';
    text.append(" waits for fiber ").append(std::to_string(cycle.members[(i + 1) % count].id));
    text.append("\n");
    append_calls(member.calls, text);
  }
  if (count > kMostLines) {
    text.append("  and ").append(std::to_string(count - kMostLines)).append(" more\n");
  }
  return text;
}

std::string describe_cycles() {
  std::string text;
  (void)scheduler::visit_registry(Deadline::never(), [&](Scheduler& scheduler) {
    const auto cycles =
        scheduler::find_wait_cycles(scheduler.shared(), Deadline::never(), SIZE_MAX);
    for (const scheduler::WaitCycle& cycle : *cycles) text.append(describe_cycle(cycle));
  });
  if (text.empty()) text = "weft: no fibers wait for each other in a circle\n";
  if (!base::notes_lock_owners()) {
    text.append("weft: mutexes do not record their owners; set WEFT_LOCK_OWNERS=1\n");
  }
  return text;
}

std::string describe_fiber(const Fiber& fiber) {
  std::string text;
  append_fiber(fiber, {}, text);
  return text;
}

std::string describe_running(Scheduler& scheduler) {
  std::string text;
  for (const scheduler::Desk* desk : scheduler.shared().desks()) {
    const std::uint64_t switches = desk->recorder.counters().switches.get();
    const Fiber* fiber = desk->recorder.running();
    if (fiber == nullptr) continue;
    append_fiber(*fiber, {}, text);
    append_calls(RunningFibers::calls_at(*desk, switches, scheduler), text);
  }
  return text;
}

std::string describe_stall(const scheduler::Stall& stall, const fibers::Backtrace& calls) {
  std::string text("weft: worker ");
  text.append(std::to_string(stall.worker));
  text.append(stall.kind == scheduler::Stall::Kind::blocked ? " is blocked" : " computes");
  text.append(" for ");
  text.append(
      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(stall.lasted).count()));
  text.append(" ms in one fiber, and others run what it has queued;");
  std::string fiber;
  append_fiber(*stall.fiber, {}, fiber);
  text.append(fiber, 1);
  append_calls(calls, text);
  text.pop_back();
  return text;
}

std::string dump_all(Deadline patience) {
  return with_enough_stack([&] { return compose_all(patience, describe_requests(patience)); });
}

std::string dump_targeted(const void* target, Deadline patience) {
  if (target == nullptr) return dump_all(patience);
  std::string text = with_enough_stack([&] {
    std::string found;
    (void)scheduler::visit_registry(patience, [&](Scheduler& scheduler) {
      append_targeted(scheduler, Fiber::digest_of(target), patience, found);
    });
    return found;
  });
  return text.empty() ? dump_all(patience) : text;
}

std::error_code write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    const int error = count == 0 ? EIO : base::last_error();
    if (error != EINTR) return {error, std::system_category()};
  }
  return {};
}

void write_to_stderr(std::string_view text) noexcept {
  // If stderr cannot be written, the report is lost.
  (void)write_all(STDERR_FILENO, text);
}

void write_all_to_stderr() noexcept {
  try {
    write_report(report_patience(), describe_requests(report_patience()));
  } catch (const std::exception& refusal) {
    report_refusal(refusal);
  }
}

void install_panic_dump() noexcept { (void)base::set_panic_hook(&dump_after_panic); }

}  // namespace weft::runtime
