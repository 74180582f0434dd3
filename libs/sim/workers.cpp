// The choice of the next fiber if a host has a limited number of workers.
#include <algorithm>

#include "libs/sim/core.hpp"

namespace weft::sim {

namespace {

// A fiber must give up its worker after this time, in nanoseconds.
constexpr std::int64_t kTurn = 10'000'000;

}  // namespace

std::size_t Core::choose() noexcept {
  if (options_.workers != 0) return choose_on_workers();
  return ready_.size() == 1 ? 0 : schedule_.choose(ready_);
}

// A fiber has a worker from its first turn until it waits or yields. A preempted fiber is ready and
// keeps its worker: the fibers that run between its turns have other workers.
std::size_t Core::choose_on_workers() {
  for (const auto& host : state_.hosts()) {
    std::erase_if(host->computing, [this](std::int64_t end) { return end <= now_; });
    host->busy_workers = static_cast<unsigned>(host->computing.size());
  }
  if (running_ != nullptr && resumable_ == kNone) actors_.at(running_).has_worker_since = 0;
  for (Candidate& each : ready_) {
    const bool keeps = !each.goes_on || ended_turn_;
    if (!keeps || now_ - each.actor->has_worker_since >= kTurn) each.actor->has_worker_since = 0;
    if (each.actor->has_worker_since != 0) ++state_.host(each.actor->host).busy_workers;
  }
  runnable_.clear();
  for (const Candidate& each : ready_) {
    const bool gets_one = state_.host(each.actor->host).busy_workers < options_.workers;
    if (each.actor->has_worker_since != 0 || gets_one || each.actor->is_helper) {
      runnable_.push_back(each);
    }
  }
  if (runnable_.empty()) return kNone;
  const std::size_t chosen = runnable_.size() == 1 ? 0 : schedule_.choose(runnable_);
  Actor& actor = *runnable_[chosen].actor;
  if (actor.has_worker_since == 0 && !actor.is_helper) actor.has_worker_since = now_;
  const auto place = std::ranges::find(ready_, runnable_[chosen].fiber, &Candidate::fiber);
  return static_cast<std::size_t>(place - ready_.begin());
}

}  // namespace weft::sim
