// Determines the scheduler for a spawn.
#pragma once

#include <optional>

#include "scheduler/refusals.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

// Holds the scheduler of one spawn, and exists until the spawn is complete.
class Destination {
 public:
  Destination() {
    if (Worker* worker = current_worker()) {
      scheduler_ = &worker->shared().scheduler();
      return;
    }
    scheduler_ = choice_.emplace().get();
    if (scheduler_ == nullptr) throw_no_runtime("weft: a plain thread spawned a fiber");
  }
  [[nodiscard]] Scheduler* operator->() const noexcept { return scheduler_; }

 private:
  std::optional<Choice> choice_;
  Scheduler* scheduler_;
};

}  // namespace weft::scheduler
