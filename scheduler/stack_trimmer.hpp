// Gives back what deep calls have left below fibers that are parked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>

#include "fibers/gate.hpp"
#include "fibers/stack.hpp"

namespace weft::scheduler {

class Scheduler;

// Sweeps over all records. Of a fiber that is parked and has pages below its calls, it hangs a gate
// in front of the saved context; some time later, if nobody has passed, it closes the gate, gives
// the pages back, opens it, and takes it away. Nothing of this is seen by a switch: a worker that
// resumes the fiber finds either context. That nobody is on the stack meanwhile, and how it is
// known, is in docs/decisions/0011-deep-stacks.md.
// Invariants
//   I1  A gate is used anew only when every worker has since made two switches, or sleeps.
//   I2  A gate is closed only under the lock of the records, which those who visit parked stacks
//       hold, and those who fork to do so.
// Owner: the monitor's thread, but for trimmed(). It outlives the workers, who may pass through
// gates until they end.
class StackTrimmer {
 public:
  // A sweep begins no sooner than `pause` nanoseconds after the one before; 0: there are none.
  StackTrimmer(Scheduler& scheduler, std::int64_t pause) noexcept;
  ~StackTrimmer();
  StackTrimmer(const StackTrimmer&) = delete;
  StackTrimmer& operator=(const StackTrimmer&) = delete;

  // A step of it, of some hundred microseconds at most while anybody is awake.
  void step(std::int64_t now) noexcept;
  [[nodiscard]] bool is_busy() const noexcept { return !refused_ && phase_ != Phase::resting; }
  // When there is something to do again if nothing has run since `last_awake`.
  [[nodiscard]] Deadline next_sweep(std::int64_t last_awake) const noexcept;
  // Stacks so far. Relaxed: statistics.
  [[nodiscard]] std::uint64_t trimmed() const noexcept { return trimmed_.load(detail::relaxed); }

 private:
  enum class Phase : std::uint8_t {
    resting,
    looking,  // For deep stacks, and hangs gates.
    waiting,  // Until they have hung for long, and every worker has left the switch it was in.
    leaving,  // The gates are gone, but somebody may still be on the way to one.
  };
  // A gate that hangs.
  struct Hung {
    fibers::Fiber* fiber = nullptr;
    fibers::Stack* stack = nullptr;
    std::uint64_t fiber_id = 0;
    bool parked = false;  // When all threads had seen the gate.
  };
  struct Memory;

  [[nodiscard]] bool make_gates() noexcept;
  [[nodiscard]] bool look() noexcept;
  [[nodiscard]] bool is_deep(const fibers::Stack& stack, fibers::Context context) const noexcept;
  void hang(fibers::Fiber& fiber) noexcept;
  void check_all() noexcept;
  [[nodiscard]] static bool is_parked(const Hung& hung) noexcept;
  void trim(std::size_t position) noexcept;
  void take_away(std::size_t position) noexcept;
  void begin_grace() noexcept;
  [[nodiscard]] bool grace_is_over() const noexcept;
  [[nodiscard]] bool grace_has_passed() const noexcept;

  Scheduler& scheduler_;
  const std::int64_t pause_;
  Phase phase_ = Phase::resting;
  bool refused_;         // Not wanted, or the system lacks what it takes.
  bool at_end_ = false;  // Of the records.
  // Or the runtime did: there is nothing yet to be found.
  std::int64_t sweep_began_ = Deadline::now_nanoseconds();
  std::int64_t hung_since_ = 0;
  std::size_t place_ = 0;                // In the records.
  std::size_t count_ = 0;                // Of gates that hang.
  Memory* memory_ = nullptr;             // Mapped when the first deep stack is found.
  std::vector<std::uint64_t> switches_;  // Of each worker, when the grace began.
  detail::Atomic<std::uint64_t> trimmed_{0};
};

}  // namespace weft::scheduler
