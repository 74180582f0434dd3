#include <cstdio>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <weft/detail/blocking_scope.hpp>
#include <weft/detail/end_wait.hpp>
#include <weft/detail/own_runtime.hpp>
#include <weft/detail/waist.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "pool/core/listing.hpp"
#include "pool/core/pool_core.hpp"
#include "pool/core/worker_loop.hpp"
#include "pool/nested/sub_pool.hpp"
#include "pool/nested/worker_registry.hpp"
#include "pool/options.hpp"
#include "pool/services/services.hpp"

namespace weft {

using pool::Condition;
using pool::PoolState;

namespace {

void run_worker(pool::PoolCore& core) {
  detail::PoolItem item;
  pool::Registration registration(core, item);
  pool::WorkerObjects objects = registration.make_objects();
  registration.set_objects(objects);
  pool::run_tasks(core, item, objects);  // Also destroys `objects`, before join() returns.
  core.leave();
}

// Requires that the pool has no live worker. If the caller was a worker, it has been retired or has
// given its slots back. Whenever the task waits for its own pool, it also gives back the caller's
// slots in other pools.
void run_stranded(pool::PoolCore& core, detail::PoolItem& item, pool::PoolWorker& self) {
  using pool::Registration;
  Registration* outer = Registration::of_caller();
  while (outer != nullptr && &outer->core() == &core) outer = outer->outer();
  const Registration registration(core, item, Registration::Slot::held, outer);
  core.runner().run(item, self);
}

constexpr pool::PoolCore::Bodies kBodies{.worker = run_worker,
                                         .reaper = pool::run_idle_reaper,
                                         .autoscaler = pool::run_autoscaler,
                                         .ticker = pool::run_ticker,
                                         .stranded = run_stranded};

// Called when a runtime ends, because the runtime waits for all fibers, including the idle workers
// of pools that outlive it.
void retire_idle_workers() noexcept {
  pool::Listing::visit_all([](pool::PoolCore& core) { core.retire_idle_workers(); });
}

// Up to this size, malloc caches blocks in each thread. If the block were larger or over-aligned,
// making a pool, running a task and ending the pool would together take 10 % longer. The options
// are therefore in a separate block.
static_assert(sizeof(pool::PoolCore) <= 1032);

std::unique_ptr<pool::PoolCore> make_core(PoolOptions&& options, pool::PoolCore* parent) {
  pool::check(options);
  auto core = std::make_unique<pool::PoolCore>(std::move(options), kBodies, parent);
  core->make_nesting<pool::PoolNesting>();
  return core;
}

[[noreturn]] void refuse_wait(const std::string& why) {
  throw std::system_error(std::make_error_code(std::errc::resource_deadlock_would_occur),
                          "weft::FiberPool: " + why);
}

// Returns whether none of the pool's remaining fibers is running user code. These fibers are
// retired workers and the library's own fibers.
bool no_user_code_is_left(const PoolState& state) noexcept {
  // If the pool has dropped tasks, a thread may still be destroying their callables.
  return state.closed && state.counters.cancelled == 0 && !state.counters.clears_without_place &&
         state.is_idle() && state.workers.live() == 0 && !state.ticker.is_running();
}

// A task must not wait for its own pool, because the pool may in turn wait for this task. Such a
// wait fails. A task of another pool with the same root gives its slots back while it waits.
// `limit_of` returns the Until that limits the wait. The argument of `limit_of` is true if the
// caller is a fiber and no_user_code_is_left() returns true.
template <class LimitOf>
bool wait_within(pool::PoolCore& core, Condition condition, std::uint64_t count, LimitOf limit_of) {
  if (pool::called_from_worker_of(&core)) {
    refuse_wait(
        "a task cannot wait for its own pool '" + core.options().name +
        "' to finish, because the pool waits for the task; wait for its submitted tasks instead");
  }
  bool is_ticker = false;
  bool only_leaves = false;
  const auto answer = core.locked([&, caller = this_fiber::id()](const PoolState& state) {
    is_ticker = caller != 0 && state.ticker.fiber() == caller;
    // A plain thread may wait so long that a report is needed, because a fiber that never yields
    // can keep the pool's workers from running.
    only_leaves = caller != 0 && no_user_code_is_left(state);
    return state.answer(condition, count);
  });
  if (is_ticker && condition == Condition::joined) {
    refuse_wait("on_tick cannot join the pool that calls it");
  }
  if (answer) return *answer;
  const detail::BlockingScope scope(&core.root());
  return core.wait(condition, count, limit_of(only_leaves));
}

bool wait(pool::PoolCore& core, Condition condition, std::uint64_t count, const Until& until) {
  return wait_within(core, condition, count, [&](bool) -> const Until& { return until; });
}

// Waits until a closed pool has ended, or until it is time to report the wait. If the remaining
// fibers run no user code, they end soon, so the wait needs no report and no timer.
bool join_until_report(pool::PoolCore& core) {
  return wait_within(core, Condition::joined, 0, [](bool only_leaves) {
    return only_leaves ? Until() : Until(detail::end_wait_report_time());
  });
}

[[gnu::noinline]] void drain(FiberPool& pool, pool::PoolCore& core) {
  pool.close(Close::drain);
  if (join_until_report(core)) return;
  char what[192];
  const PoolStats stats = pool.stats();
  (void)std::snprintf(what, sizeof what,
                      "the destructor of FiberPool '%s' (tasks: %zu run, %zu are queued)",
                      core.options().name.c_str(), stats.busy, stats.queued);
  detail::report_end_wait(what, nullptr);
  pool.join();
}

// An exception ends the process in this frame, because the function is noexcept. Because neither
// drain() nor this function is inlined, no destructor of the pool's members has run when
// std::terminate reports the exception.
[[gnu::noinline]] void drain_or_terminate(FiberPool& pool, pool::PoolCore& core) noexcept {
  drain(pool, core);
}

}  // namespace

FiberPool::FiberPool(PoolOptions options)
    : core_([&] {
        pool::PoolCore* const parent =
            options.parent == nullptr ? nullptr : options.parent->core_.get();
        return make_core(std::move(options), parent);
      }()) {
  detail::on_runtime_end(retire_idle_workers);
  if (const std::error_code error = core_->start()) {
    close(Close::discard);
    join();
    check(error);
  }
  outer_stop_.add(core_->options().stop, CloseOnStop{this});
}

FiberPool::~FiberPool() { drain_or_terminate(*this, *core_); }

void FiberPool::resize(std::size_t capacity) {
  if (capacity == 0)
    throw std::invalid_argument(
        "weft::FiberPool: resize to a capacity of 0; must be at least 1; pause() lets "
        "nothing start");
  if (capacity == kUnlimited && core_->options().grow.kind() == GrowPolicy::Kind::eager) {
    throw std::invalid_argument(
        "weft::FiberPool: resize to kUnlimited; must be limited with grow: eager");
  }
  core_->change([capacity](PoolState& state) { state.resize(capacity); });
}

void FiberPool::reopen() {
  const bool was_closed = core_->reopen();
  // If the stop was requested before this call, CloseOnStop has already run and will not run again,
  // so this call closes the pool. If the stop is requested later, CloseOnStop closes the pool.
  if (core_->options().stop.stop_requested()) return close(Close::cancel);
  if (was_closed) check(core_->start());
}
void FiberPool::CloseOnStop::operator()() noexcept { pool->close(Close::cancel); }

void FiberPool::pause() noexcept { core_->locked(&PoolState::pause); }
void FiberPool::resume() noexcept { core_->end_pause_if(&PoolState::resume); }
PauseScope::PauseScope(FiberPool& pool) noexcept
    : pool_(pool), number_(pool.core_->locked(&PoolState::hold_pause)) {}
PauseScope::~PauseScope() {
  pool_.core_->end_pause_if([this](PoolState& state) { return state.release_pause(number_); });
}
bool FiberPool::is_paused_hint() const noexcept { return core_->locked(&PoolState::paused); }
void FiberPool::close(Close mode) noexcept { core_->close(mode); }
bool FiberPool::is_closed_hint() const noexcept { return core_->locked(&PoolState::closed); }
std::size_t FiberPool::capacity() const noexcept { return core_->locked(&PoolState::capacity); }
std::size_t FiberPool::available_hint() const noexcept { return core_->available(); }
std::stop_token FiberPool::stop_token() const noexcept { return core_->stop_token(); }
PoolStats FiberPool::stats() const noexcept { return core_->locked(&PoolState::read); }
PoolTimings FiberPool::timings() const noexcept { return core_->timings(); }

bool FiberPool::wait_idle_until(const Until& until) {
  return wait(*core_, Condition::idle, 0, until);
}
bool FiberPool::wait_paused_until(const Until& until) {
  return wait(*core_, Condition::paused, 0, until);
}
bool FiberPool::wait_for_completed(std::uint64_t count, const Until& until) {
  return wait(*core_, Condition::counted, count, until);
}
bool FiberPool::join_until(const Until& until) { return wait(*core_, Condition::joined, 0, until); }

const pool::PoolCore& FiberPool::root() const noexcept { return core_->root(); }

detail::BlockingScope::BlockingScope(const FiberPool* pool) noexcept
    : BlockingScope(pool == nullptr ? nullptr : &pool->root()) {}

}  // namespace weft
