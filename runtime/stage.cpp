// Describes the fibers of a simulation.
#include "runtime/dump.hpp"
#include "scheduler/simulation.hpp"

namespace weft::detail {

std::string Stage::describe() const { return runtime::describe_calls(*scheduler_); }

std::string Stage::describe(const fibers::Fiber& fiber) const {
  return runtime::describe_fiber(fiber);
}

std::string Stage::describe_running() const { return runtime::describe_running(*scheduler_); }

}  // namespace weft::detail
