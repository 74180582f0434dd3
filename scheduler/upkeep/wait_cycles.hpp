// Fibers that wait for each other, while other fibers live.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/detail/waist.hpp>

#include "fibers/calls/backtrace.hpp"
#include "fibers/fiber.hpp"

namespace weft::scheduler {

class Census;
class Shared;

// Each fiber waits for the next one, and the last one for the first; or one waits for itself.
struct WaitCycle {
  struct Member {
    const fibers::Fiber* fiber = nullptr;
    std::uint64_t id = 0;
    detail::WaitReason reason = detail::WaitReason::none;
    std::chrono::nanoseconds age{};  // For how long it has been parked: see parked_time().
    fibers::Backtrace calls = {};    // Empty where an inlined child's are on top.
  };
  std::vector<Member> members;
};

// Whether the fiber waits for the end of other fibers, or for a mutex that one of them owns.
[[nodiscard]] inline bool may_be_in_cycle(const fibers::Fiber& fiber) noexcept {
  const auto reason = static_cast<detail::WaitReason>(fiber.reason());
  return reason == detail::WaitReason::join || reason == detail::WaitReason::wait_group ||
         reason == detail::WaitReason::mutex;
}

// Finds the cycles among the fibers of one scheduler: README.md, "Deadlocks of some fibers", says
// by what, and why none of them is a false alarm. Cycles that share a fiber are found as one of
// them. Takes the lock of the records, and some microseconds for each fiber that may be in a cycle;
// nothing is found if these are more than `most`. Returns nothing if the lock was not to be had
// before `patience` ended. Call it from plain threads. Throws std::bad_alloc.
[[nodiscard]] std::optional<std::vector<WaitCycle>> find_wait_cycles(Shared& shared,
                                                                     Deadline patience,
                                                                     std::size_t most);

// Reports each cycle once. Owner: the monitor.
class CycleWatch {
 public:
  explicit CycleWatch(Shared& shared) noexcept : shared_(shared) {}

  // Looks if the first step or the last look is a minute old, or if the monitor is about to rest
  // and more or fewer fibers wait for others than at the last look. Returns false if a look was
  // due, and the records' lock was not to be had.
  bool step(const Census& census, std::int64_t now, bool is_about_to_rest) noexcept;

 private:
  // Returns false if the records' lock was not to be had.
  [[nodiscard]] bool look(Deadline patience);

  Shared& shared_;
  std::int64_t last_look_ = 0;  // Or the first step.
  std::size_t waits_then_ = 0;
  std::vector<std::uint64_t> reported_;  // The smallest number of a fiber in each.
};

}  // namespace weft::scheduler
