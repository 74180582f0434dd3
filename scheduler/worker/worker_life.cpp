// How a worker and its thread begin and end. Compiled for size.
#include <weft/detail/simulated.hpp>

#include "base/lock_owners.hpp"
#include "base/panic.hpp"
#include "scheduler/machine_clock.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/tuning.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/loop.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

using detail::relaxed;

Worker::Worker(Shared& shared, unsigned index)
    : desk_(shared.desks().setting_of(index, shared.now()), shared.events()),
      shared_(shared),
      default_size_class_(static_cast<std::uint8_t>(shared.options().size_class)),
      announcer_(desk_, shared,
                 Pace(shared.now(), shared.options().monitor.enabled,
                      shared.options().simulation != nullptr ? 1 : tuning::kMostDecisions)),
      stacks_(shared.stacks()),
      fibers_(shared.fibers()),
      stack_waits_(*this, &make_ready_on, shared, desk_, stacks_, fibers_) {
  WEFT_CHECK(!detail::is_simulated(),
             "a Runtime was made inside a simulation, which has one thread: spawn fibers instead");
  // In a simulation, allotted() returns 1, so that a look follows each decision.
  desk_.decisions_left.store(announcer_.pace().allotted(), relaxed);
}

Worker::~Worker() = default;

Loop::Loop(Shared& shared, unsigned index)
    : worker_(shared, index),
      desk_(worker_.desk()),
      shared_(shared),
      clockwork_(worker_, shared),
      searcher_(worker_, clockwork_, shared) {}

void Worker::begin_thread() noexcept {
  desk_.recorder.begins_life(machine_now());
  desk_.thread.adopt();
  weft_current_worker = this;
  weft_block_cache = &blocks_;
  weft_current_turn = &desk_.turn;
  desk_.turn.over.store(base::notes_lock_owners(), relaxed);
  thread_ = fibers::ThreadState::of_this_thread();
  idle_stack_.sanitizer.adopt_thread();
}

void Worker::end_thread() noexcept {
  thread_.between.destroy();
  weft_current_turn = &weft_endless_turn;
  weft_block_cache = nullptr;
  weft_current_worker = nullptr;
}

}  // namespace weft::scheduler
