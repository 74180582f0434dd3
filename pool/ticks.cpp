// Telling the numbers of a pool every so often.
//
// One fiber of the pool does it, from when the pool is opened until nothing else of it is left: so
// the last call has the final numbers, and a joiner waits for its return. It looks at the numbers
// as anybody else, and nothing in the path of a task knows of it.
#include <exception>
#include <system_error>
#include <weft/this_fiber.hpp>

#include "pool/pool_core.hpp"
#include "pool/spawn_fiber.hpp"

namespace weft::pool {

using detail::Waiter;

std::error_code PoolCore::start_ticker() noexcept {
  if (!options_.on_tick.call) return {};
  lock_.lock();
  const bool is_missing = !ticker_alive_ && !closed_;
  if (is_missing) {
    ticker_alive_ = true;
    ++present_;
  }
  lock_.unlock();
  if (!is_missing) return {};
  const std::error_code error = spawn_fiber(options_, [this] { tick(); });
  if (error) {
    WakeChain wakes;
    lock_.lock();
    ticker_alive_ = false;
    --present_;
    tell_if_gone(wakes);  // Somebody may have closed the pool meanwhile.
    lock_.unlock();
    wakes.wake_all();
  }
  return error;
}

void PoolCore::tick() noexcept {
  WakeChain wakes;
  Deadline next = Deadline::after(options_.on_tick.period);
  lock_.lock();
  ticker_ = this_fiber::id();
  for (;;) {
    const bool at_end = only_ticker_is_left();
    const std::uint64_t submitted = submitted_;
    if (at_end) {
      lock_.unlock();
    } else {
      Waiter self;
      // Woken by who leaves the ticker alone, or by the clock.
      (void)detail::wait_in_until(ticker_bed_, lock_, self, detail::WaitReason::sleep, next);
    }
    if (at_end || next.passed()) {
      call_on_tick();
      next = Deadline::after(options_.on_tick.period);
    }
    lock_.lock();
    // It may have been opened during the call, and have run tasks.
    if (at_end && only_ticker_is_left() && submitted_ == submitted) break;
  }
  ticker_alive_ = false;
  ticker_ = 0;
  --present_;
  tell_if_gone(wakes);
  lock_.unlock();  // The last access to the pool.
  wakes.wake_all();
}

void PoolCore::call_on_tick() noexcept {
  std::exception_ptr exception;
  try {
    options_.on_tick.call(stats());
  } catch (...) {
    exception = std::current_exception();
  }
  if (exception) log("on_tick threw", exception);
}

}  // namespace weft::pool
