// All living fibers, as plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <typeinfo>
#include <vector>

#include "scheduler/scheduler.hpp"

namespace weft::observe {

struct FiberEntry {
  const void* record = nullptr;
  unsigned runtime = 0;  // Its number, as in the metrics.
  bool has_started = false;
  std::uint64_t id = 0;  // 0 if it has not started.
  std::string name;
  const char* state = "";          // The state: ready, running, parked or inlining.
  const char* reason = "";         // The reason to wait, if parked or inlining.
  std::chrono::nanoseconds age{};  // See scheduler::age_of().
  std::string request;             // The request that it handles; empty if none.
  std::int64_t request_began = 0;  // A time of Deadline's clock.
  const std::type_info* type = nullptr;
  const void* site = nullptr;  // The return address of the call that spawned it.
};

// Lists the fibers of all runtimes. Throws std::bad_alloc, std::system_error.
[[nodiscard]] std::vector<FiberEntry> list_fibers();

// Fibers that have done the same for about the same time.
struct FiberGroup {
  FiberEntry example;  // The fiber that has done so longest.
  std::uint64_t count = 0;
};
// Groups fibers by where they were spawned, what they run, what they wait for, and for how long.
// Durations below a minute, ten minutes, an hour, a day, and longer are separate groups. Returns
// the largest group first.
[[nodiscard]] std::vector<FiberGroup> group_fibers(const std::vector<FiberEntry>& fibers);

// Return descriptions in words; empty if nothing is known.
[[nodiscard]] std::string describe_task(const FiberEntry& fiber);
[[nodiscard]] std::string describe_site(const FiberEntry& fiber);

// Makes the call on a separate thread if the calling fiber may lack the kilobytes of stack that a
// description takes. Throws what `call` throws, and std::system_error if the system refuses the
// thread.
void call_with_enough_stack(const std::function<void()>& call);

}  // namespace weft::observe
