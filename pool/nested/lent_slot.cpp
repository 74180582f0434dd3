// If a task that calls run() gave its slot back during the wait, the pool would start another
// worker for the awaited task. A recursion of n calls would then need n workers. The caller
// therefore lends its slot if the awaited task would be the next to start, and no worker is
// available. The caller spawns a fiber that runs the task, and joins the fiber. If the caller's own
// stack has at least as much room as a separate stack, the runtime can run the fiber on the
// caller's stack; see Worker::run_in_place().
#include "pool/nested/lent_slot.hpp"

#include <cstdint>
#include <string_view>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/pool_function.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "pool/core/pool_core.hpp"
#include "pool/nested/worker_registry.hpp"

namespace weft::pool {

namespace {

void run_in_lent_slot(PoolCore& core, detail::PoolItem& item, std::uint64_t number,
                      Registration* outer) noexcept {
  const Registration registration(core, item, Registration::Slot::held, outer);
  core.run_in_lent_slot(item, number);
}

// Runs the task in a fiber and waits for it. Returns false if no fiber is available.
template <class Run>
bool run_on_fiber(const PoolOptions& options, Run run) noexcept {
  WEFT_TRY {
    weft::spawn({.stack_size = options.stack_size}, [&] {
      this_fiber::set_name(options.name.empty() ? std::string_view("pool") : options.name);
      run();
    }).join();
    return true;
  }
  WEFT_CATCH_ALL { return false; }
}

}  // namespace

bool run_in_slot_of(Registration* caller, PoolCore& core, detail::PoolItem& item) noexcept {
  if (caller == nullptr || &caller->core() != &core) return false;
  // In a Submitting scope, the slot is not lent: the task may call a per_worker() function, and
  // would then create an object for the new fiber.
  if (detail::Submitting::is_any() || !caller->try_lend_slot()) return false;
  std::uint64_t number = 0;
  if (!core.lend_slot(item, number)) {
    caller->end_lending();
    return false;
  }
  const auto run = [&] { run_in_lent_slot(core, item, number, caller->outer()); };
  if (!run_on_fiber(core.options(), run)) run();
  caller->end_lending();
  return true;
}

}  // namespace weft::pool
