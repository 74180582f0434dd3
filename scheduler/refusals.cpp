#include "scheduler/refusals.hpp"

#include <string>
#include <system_error>
#include <weft/error.hpp>

#include "scheduler/shared.hpp"

namespace weft::scheduler {

namespace {

[[noreturn]] void throw_error(Errc code, const std::string& what) {
  throw std::system_error(make_error_code(code), what);
}

}  // namespace

void throw_no_runtime(const char* what) { throw_error(Errc::no_runtime, what); }

void throw_stack_size(std::size_t stack_size) {
  throw_error(Errc::invalid_stack_size,
              "weft: SpawnOptions::stack_size = " + std::to_string(stack_size) + ", at most " +
                  std::to_string(fibers::kLargestStack));
}

void Shared::throw_too_many_fibers() {
  if (const std::size_t waiting = stack_shortage_.waiting();
      waiting != 0 && options_.refuses_without_stacks) {
    throw_error(Errc::too_many_fibers, "weft: RuntimeOptions::refuse_without_stacks: " +
                                           std::to_string(waiting) + " fibers wait for a stack");
  }
  if (const MemoryGoal& goal = stores_.goal(); goal.is_refusing()) {
    // Wakes the monitor, which must notice a fall in memory use even if all workers are asleep.
    detail::full_fence();  // [goal]
    monitor_rest_.end();
    throw_error(
        Errc::too_many_fibers,
        "weft: RuntimeOptions::memory_goal = " + std::to_string(goal.bytes()) +
            (goal.is_set_by_program() ? " bytes, which the process uses"
                                      : " bytes, 7/8 of the control group's limit, which the "
                                        "process uses"));
  }
  throw_error(Errc::too_many_fibers,
              "weft: RuntimeOptions::max_fibers = " + std::to_string(options_.max_fibers));
}

}  // namespace weft::scheduler
