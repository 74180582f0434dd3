// Finds fibers that wait for each other while other fibers run.
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

// Each fiber waits for the next fiber, and the last fiber for the first. A fiber may also wait for
// itself.
struct WaitCycle {
  struct Member {
    const fibers::Fiber* fiber = nullptr;
    std::uint64_t id = 0;
    detail::WaitReason reason = detail::WaitReason::none;
    std::chrono::nanoseconds age{};  // How long the fiber has been parked: see parked_time().
    fibers::Backtrace calls = {};    // Empty if an inlined child runs on the fiber's stack.
  };
  std::vector<Member> members;
};

[[nodiscard]] inline bool is_shared_lock(detail::WaitReason reason) noexcept {
  return reason == detail::WaitReason::shared_mutex_read ||
         reason == detail::WaitReason::shared_mutex_write;
}
// Returns whether the fiber waits for the end of other fibers, or for a mutex that fibers own.
[[nodiscard]] inline bool may_be_in_cycle(const fibers::Fiber& fiber) noexcept {
  const auto reason = static_cast<detail::WaitReason>(fiber.reason());
  return reason == detail::WaitReason::join || reason == detail::WaitReason::wait_group ||
         reason == detail::WaitReason::mutex || is_shared_lock(reason);
}

// Finds the cycles among the fibers of one scheduler. README.md, "Deadlocks of some fibers",
// describes the method, and why it never raises a false alarm. If several cycles share a fiber, the
// function reports only one of them. It holds the records' lock for a few microseconds for each
// fiber that may be in a cycle. If there are more than `most` such fibers, it does not search.
// Returns std::nullopt if the lock does not become free before `patience` passes. Plain threads
// only. Throws std::bad_alloc.
[[nodiscard]] std::optional<std::vector<WaitCycle>> find_wait_cycles(Shared& shared,
                                                                     Deadline patience,
                                                                     std::size_t most);

// Reports each cycle once. Owner: the monitor.
class CycleWatch {
 public:
  explicit CycleWatch(Shared& shared) noexcept : shared_(shared) {}

  // Searches for cycles if a minute has passed since the last search or, if there was none, since
  // the first step. Also searches before the monitor rests, if the number of fibers that wait for
  // other fibers has changed since the last search. Returns false if a search was due, but another
  // thread held the records' lock.
  bool step(const Census& census, std::int64_t now, bool is_about_to_rest) noexcept;

 private:
  // Returns false if the records' lock does not become free before `patience` passes.
  [[nodiscard]] bool look(Deadline patience);

  Shared& shared_;
  std::int64_t last_look_ = 0;  // The time of the last search, or of the first step.
  std::size_t waits_then_ = 0;
  std::vector<std::uint64_t> reported_;  // The smallest fiber number of each reported cycle.
};

}  // namespace weft::scheduler
