// Reports the statistics of a pool periodically.
//
// The ticker is a fiber. It starts when the pool is opened, and ends once nothing else uses the
// closed pool. The last call of on_tick therefore reports the final statistics, and join() waits
// until that call returns. The ticker adds no cost to tasks, because it reads statistics that the
// pool keeps anyway.
#include <exception>
#include <weft/this_fiber.hpp>

#include "pool/core/pool_core.hpp"
#include "pool/core/reports.hpp"
#include "pool/services/services.hpp"

namespace weft::pool {
namespace {

void call_on_tick(PoolCore& core) noexcept {
  std::exception_ptr exception;
  try {
    core.options().on_tick.call(core.locked(&PoolState::read));
  } catch (...) {
    exception = std::current_exception();
  }
  if (exception) log(core.options(), "on_tick threw", exception);
}

}  // namespace

void run_ticker(PoolCore& core) {
  const auto period = core.options().on_tick.period;
  Deadline next = Deadline::after(period);
  core.lock();
  PoolState& state = core.state();
  state.ticker.set_fiber(this_fiber::id());
  for (;;) {
    const bool at_end = state.only_ticker_is_left();
    const std::uint64_t submitted = state.counters.submitted;
    // Sleeps until the next tick, or until only the ticker is left.
    if (!at_end) core.sleep(state.ticker, next);
    core.unlock();
    if (at_end || next.passed()) {
      call_on_tick(core);
      next = Deadline::after(period);
    }
    core.lock();
    // While on_tick ran, another caller may have opened the pool again, and submitted tasks.
    if (at_end && state.only_ticker_is_left() && state.counters.submitted == submitted) break;
  }
  state.ticker.end();
  core.unlock_and_leave();
}

}  // namespace weft::pool
