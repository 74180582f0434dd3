#include "scheduler/registry.hpp"

#include <array>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/fork.hpp>
#include <weft/detail/never_destroyed.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "base/lock_owners.hpp"
#include "base/lock_until.hpp"
#include "base/thread.hpp"
#include "scheduler/sleep/parked_threads.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

#ifdef WEFT_GDB_SCRIPT
// An entry of kind 1, which names a file with Python code for gdb. The entry is here because every
// program that uses the library links this source file.
asm(".pushsection \".debug_gdb_scripts\", \"MS\",%progbits,1\n\t"
    ".byte 1\n\t"
    ".asciz \"" WEFT_GDB_SCRIPT
    "\"\n\t"
    ".popsection");
#endif

namespace weft::scheduler {

using detail::acquire;
using detail::full_fence;
using detail::relaxed;
using detail::release;

namespace {

// Order
//   [default]   choose_default() stores default_scheduler (release) -> Choice() loads it (acquire):
//               Choice() sees a completely constructed scheduler.
//   [choosing]  Choice() counts itself, calls full_fence(), and loads the default. stop_choosing()
//               stores another default, calls full_fence(), and reads the counts. Therefore either
//               Choice() loads the new default, or stop_choosing() waits for this Choice to end.
detail::Atomic<Scheduler*> default_scheduler{nullptr};

// Each of the two counters counts threads that are choosing a runtime. stop_choosing() directs new
// threads to one counter, and waits until the other is 0. Then it swaps the counters and waits
// again. It therefore returns even if new threads continuously choose a runtime.
std::array<detail::Atomic<std::uint32_t>, 2> choosing;
detail::Atomic<std::uint32_t> side_of_newcomers{0};

// A thread also holds this mutex while it sets the default or swaps the two counters.
detail::ThreadMutex registry_mutex;
// All schedulers, and the schedulers that a thread may choose; each list begins with the oldest.
// The lists are never destroyed, because a static runtime may outlive other static objects.
// tools/gdb/weft.py reads `registry`.
constinit detail::NeverDestroyed<std::vector<Scheduler*>> registry WEFT_GUARDED_BY(registry_mutex);
constinit detail::NeverDestroyed<std::vector<Scheduler*>> choosable WEFT_GUARDED_BY(registry_mutex);

// Not inlined. Otherwise, a compiler could keep the variable's address while a fiber moves to
// another thread.
[[gnu::noinline]] Scheduler*& bound_scheduler() noexcept {
  thread_local Scheduler* bound = nullptr;
  return bound;
}

void choose_default() noexcept WEFT_REQUIRES(registry_mutex) {
  default_scheduler.store(choosable.get().empty() ? nullptr : choosable.get().front(),
                          release);  // [default]
}

void before_fork() WEFT_ACQUIRES(registry_mutex) { registry_mutex.lock(); }
void after_fork_in_parent() WEFT_RELEASES(registry_mutex) { registry_mutex.unlock(); }
// Only the thread that forked exists in the child. A scheduler's lock that another thread held at
// the fork stays locked forever.
void after_fork_in_child() WEFT_RELEASES(registry_mutex) {
  registry.get().clear();
  choosable.get().clear();
  choose_default();
  for (auto& side : choosing) side.store(0, relaxed);
  bound_scheduler() = nullptr;
  ParkedThreads::reset();
  if (base::notes_lock_owners()) base::shared_owners.reset();
  if (Worker* worker = current_worker()) {
    // In the child, the fiber continues like a plain thread. It must not end, because its worker
    // does not exist there.
    if (fibers::Fiber* fiber = worker->current_fiber()) {
      fiber->stack.load(relaxed)->no_switch |= fibers::Stack::kForked;
      base::note_forked_fiber();
    }
    weft_block_cache = nullptr;
    weft_current_worker = nullptr;
  }
  registry_mutex.unlock();
}

const detail::ForkHandlers registry_fork_handlers(detail::ForkHandlers::Locks::outer, &before_fork,
                                                  &after_fork_in_parent, &after_fork_in_child);

}  // namespace

void enter_registry(Scheduler& scheduler) {
  const detail::Guard lock(registry_mutex);
  registry.get().reserve(registry.get().size() + 1);
  choosable.get().push_back(&scheduler);
  registry.get().push_back(&scheduler);
  choose_default();
}

void stop_choosing(Scheduler& scheduler) noexcept {
  const detail::Guard lock(registry_mutex);
  if (std::erase(choosable.get(), &scheduler) == 0) return;
  choose_default();
  for (int turn = 0; turn < 2; ++turn) {
    // Relaxed: the value changes only under the mutex. A Choice may read an old value, but this
    // loop waits until each counter has been 0. It thus outlasts each Choice of the old default.
    const std::uint32_t side = side_of_newcomers.fetch_add(1, relaxed) % 2;
    full_fence();                                                       // [choosing]
    while (choosing[side].load(acquire) != 0) base::yield_processor();  // [choosing]
  }
}

void leave_registry(Scheduler& scheduler) noexcept {
  stop_choosing(scheduler);
  const detail::Guard lock(registry_mutex);
  std::erase(registry.get(), &scheduler);
}

// Excluded from thread-safety analysis: see lock_until().
bool visit_registry(Deadline patience,
                    const std::function<void(Scheduler&)>& visit) WEFT_NOT_ANALYZED {
  const std::unique_lock lock = base::lock_until(registry_mutex, patience);
  if (!lock) return false;
  for (Scheduler* scheduler : registry.get()) visit(*scheduler);
  return true;
}

Scheduler* bind_this_thread(Scheduler* scheduler) noexcept {
  return std::exchange(bound_scheduler(), scheduler);
}

Choice::Choice() noexcept : side_(side_of_newcomers.load(relaxed) % 2) {
  choosing[side_].fetch_add(1, relaxed);
  full_fence();  // [choosing]
  scheduler_ = bound_scheduler();
  if (scheduler_ == nullptr) scheduler_ = default_scheduler.load(acquire);  // [default]
}

Choice::~Choice() { choosing[side_].fetch_sub(1, release); }  // [choosing]

}  // namespace weft::scheduler
