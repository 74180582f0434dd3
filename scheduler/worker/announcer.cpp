#include "scheduler/worker/announcer.hpp"

#include "scheduler/machine_clock.hpp"
#include "scheduler/sleep/sleep_protocol.hpp"
#include "scheduler/tuning.hpp"

namespace weft::scheduler {

void Announcer::call_for_help() noexcept {
  if (desk_.queue.empty_hint()) return;
  pace_.note_call(machine_now());
  if (!shared_.is_crowded()) wake_one(shared_);
}

void Announcer::announce_event() noexcept {
  if (desk_.recorder.running() != nullptr && expects_long_runs()) mind_watch_while_awake();
}

void Announcer::mind_watch_while_awake() noexcept {
  if (!shared_.idle().anyone_asleep()) return;
  const Deadline next = desk_.next_timer_hint();
  mind_watch(shared_, next.is_never() ? next.nanoseconds() : next.nanoseconds() + tuning::kOverdue);
}

}  // namespace weft::scheduler
