// If a task that runs another and waits for it gave its slot back, another worker would be started
// for the awaited task: a recursion of n calls would need n workers. If the awaited task would be
// the next to start, and no worker is available, the caller lends its slot to a fiber that it
// spawns for the task and joins. The runtime runs such a fiber on the caller's own stack if that
// has as much room as a separate stack; see Worker::run_in_place().
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
  // The task would make a new object where a worker already has one.
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
