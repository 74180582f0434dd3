#include "tests/support/sleep_check.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>

#include "scheduler/event_source.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/tuning.hpp"

namespace weft::test {

namespace {

using scheduler::Scheduler;

// After this number of equal samples, no worker is about to change anything. If a worker computes,
// the monitor is not either: it samples every 10 ms, and may have to wait for a processor.
constexpr std::size_t kLooks = 3;
constexpr std::size_t kLooksBesideComputing = 50;
// In nanoseconds. If a timer is overdue by this time, no worker will fire it.
constexpr std::int64_t kForgotten = 2'000'000'000;

struct WorkerSight {
  int thread = 0;
  bool asleep = false;  // Its thread sleeps, and is not just waking.
  bool in_source = false;
  bool computes = false;
  bool is_up = false;  // It runs its own timers; a resting spare is no sleeper.
  std::uint64_t sleeps = 0;
  std::uint64_t switches = 0;
  std::int64_t timer = 0;
  bool operator==(const WorkerSight&) const = default;
};

struct SchedulerSight {
  unsigned number = 0;
  int holder = 0;
  std::int64_t limit = 0;
  bool watches_events = false;
  bool has_work = false;
  std::vector<WorkerSight> workers;
  bool operator==(const SchedulerSight&) const = default;
};

// Returns whether a thread waits for anything except a processor or a page. A thread whose state is
// unknown may be about to act.
bool sleeps(int thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return false;
  return line.compare(line.rfind(')') + 1, 2, " S") == 0;
}

WorkerSight look_at(const scheduler::Shared& its, const scheduler::Desk& desk) {
  WorkerSight sight;
  sight.thread = desk.thread.number();
  const bool asleep = its.is_asleep(desk);
  sight.computes = !asleep && desk.recorder.running() != nullptr;
  sight.is_up = !its.idle().is_asleep(desk.index);
  sight.asleep = asleep && (sight.thread == 0 || sleeps(sight.thread));
  sight.in_source = desk.waits_for_events_hint();
  sight.sleeps = desk.recorder.counters().sleeps.get();
  sight.switches = desk.recorder.counters().switches.get();
  sight.timer = desk.next_timer_hint().nanoseconds();
  return sight;
}

SchedulerSight look_at(scheduler::Shared& scheduler) {
  SchedulerSight sight;
  sight.number = scheduler.number();
  sight.holder = scheduler.watch().holder();
  sight.limit = scheduler.watch().limit();
  sight.watches_events = scheduler.watches_events();
  sight.has_work = scheduler.has_work_hint();
  for (const scheduler::Desk* desk : scheduler.desks()) {
    sight.workers.push_back(look_at(scheduler, *desk));
  }
  return sight;
}

// Returns whether no worker is about to act by itself.
bool is_at_rest(const SchedulerSight& sight) {
  return std::ranges::any_of(sight.workers, &WorkerSight::asleep) &&
         std::ranges::all_of(sight.workers, [](const WorkerSight& worker) {
           return worker.asleep || worker.computes;
         });
}

bool anybody_computes(const SchedulerSight& sight) {
  return std::ranges::any_of(sight.workers, &WorkerSight::computes);
}

// Returns whether a thread other than these workers and this thread is running. It may be between a
// change and the wake that must follow the change.
bool another_thread_runs(const SchedulerSight& sight) {
  std::error_code error;
  std::filesystem::directory_iterator task("/proc/self/task", error);
  for (; !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
    const int thread = std::stoi(task->path().filename());
    if (thread == ::gettid() || sleeps(thread)) continue;
    if (std::ranges::find(sight.workers, thread, &WorkerSight::thread) == sight.workers.end())
      return true;
  }
  return false;
}

std::int64_t earliest_timer(const SchedulerSight& sight) {
  std::int64_t earliest = Deadline::never().nanoseconds();
  for (const WorkerSight& worker : sight.workers) {
    if (worker.timer == Deadline::never().nanoseconds()) continue;
    earliest = std::min(earliest, worker.timer + (worker.is_up ? scheduler::tuning::kOverdue : 0));
  }
  return earliest;
}

const char* fault_of(const SchedulerSight& sight, std::size_t looks) {
  const std::int64_t timer = earliest_timer(sight);
  const bool has_timer = timer != Deadline::never().nanoseconds();
  if (sight.has_work && !anybody_computes(sight)) return "fibers are ready, and all workers sleep";
  if (sight.holder < 0) {
    return has_timer || sight.watches_events ? "no worker that sleeps holds the watch" : nullptr;
  }
  // A stopped processor may delay another thread that is about to act, but not this thread.
  const bool is_forgotten =
      looks >= kLooksBesideComputing && timer < Deadline::now_nanoseconds() - kForgotten;
  if (sight.limit > timer || is_forgotten) {
    return "the holder of the watch sleeps beyond the earliest timer";
  }
  const auto holder = static_cast<std::size_t>(sight.holder);
  if (sight.watches_events && !sight.workers.at(holder).in_source) {
    return "the holder of the watch does not sleep in the event source";
  }
  return nullptr;
}

std::string describe(const SchedulerSight& sight) {
  const std::int64_t now = Deadline::now_nanoseconds();
  const auto from_now = [now](std::int64_t moment) {
    return moment == Deadline::never().nanoseconds() ? "never" : std::to_string(moment - now);
  };
  std::string text = "; the holder is " + std::to_string(sight.holder) + ", its limit " +
                     from_now(sight.limit) + " ns from now; timers";
  for (const WorkerSight& worker : sight.workers) {
    text += " " + from_now(worker.timer) + (worker.computes ? " (computes)" : "");
  }
  return text;
}

}  // namespace

struct SleepCheck::Sight {
  std::vector<SchedulerSight> schedulers;
  bool operator==(const Sight&) const = default;
};

SleepCheck::SleepCheck() = default;
SleepCheck::~SleepCheck() = default;

std::string SleepCheck::look() {
  auto sight = std::make_unique<Sight>();
  (void)scheduler::visit_registry(Deadline::past(), [&](Scheduler& scheduler) {
    const bool is_real =
        scheduler.shared().options().simulation == nullptr && !scheduler.lost_in_fork();
    if (is_real && !scheduler.shared().stopping())
      sight->schedulers.push_back(look_at(scheduler.shared()));
  });
  equal_ = before_ != nullptr && *before_ == *sight ? equal_ + 1 : 0;
  before_ = std::move(sight);
  for (const SchedulerSight& each : before_->schedulers) {
    const std::size_t wanted = anybody_computes(each) ? kLooksBesideComputing : kLooks;
    if (equal_ < wanted || !is_at_rest(each)) continue;
    const char* const fault = fault_of(each, equal_);
    if (fault == nullptr) continue;
    if (!another_thread_runs(each)) return fault + describe(each);
    equal_ = 0;
  }
  return {};
}

}  // namespace weft::test
