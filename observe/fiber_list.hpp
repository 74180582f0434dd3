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
  const char* state = "";          // ready, running, parked, inlining
  const char* reason = "";         // Its reason to wait: parked and inlining.
  std::chrono::nanoseconds age{};  // See scheduler::age_of().
  std::string request;             // That its server handles in it; empty if there is none.
  std::int64_t request_began = 0;  // On the clock of Deadline.
  const std::type_info* type = nullptr;
  const void* site = nullptr;  // Where the call that spawned it returns to.
};

// Lists the fibers of all runtimes. Throws std::bad_alloc, std::system_error.
[[nodiscard]] std::vector<FiberEntry> list_fibers();

// Fibers that do the same, for as long.
struct FiberGroup {
  FiberEntry example;  // The one that has done so longest.
  std::uint64_t count = 0;
};
// By where they were spawned, what they run and what they wait for, and whether that has lasted
// less than a minute, ten minutes, an hour, a day, or more; the largest first.
[[nodiscard]] std::vector<FiberGroup> group_fibers(const std::vector<FiberEntry>& fibers);

// In words; empty where nothing is known.
[[nodiscard]] std::string describe_task(const FiberEntry& fiber);
[[nodiscard]] std::string describe_site(const FiberEntry& fiber);

// Describing takes kilobytes of stack, which a fiber may not have: then a thread of its own calls.
// Throws what `call` throws, and std::system_error when the system refuses the thread.
void call_with_enough_stack(const std::function<void()>& call);

}  // namespace weft::observe
