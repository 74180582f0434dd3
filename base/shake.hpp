// Makes random decisions for tests, only in builds with -Dshake=true.
#pragma once

#include <cstdint>

namespace weft::base::shake {

// The decisions that may be random. Each outcome is correct, however unlikely. A correct program
// works with all outcomes, at any time and in any order.
enum class Point : std::uint8_t {
  delay,       // Other threads make progress first. Called anywhere, with any lock held.
  give_way,    // Other fibers run first. Only where the caller may park.
  wake_last,   // A woken fiber is queued after all ready fibers instead of before them.
  wake_apart,  // A woken fiber goes to the queue that all workers share.
  run_apart,   // A fiber that could run in place runs on another stack.
  rouse,       // A sleeping thread is woken without reason.
  pass_by,     // A thief skips a victim.
  grab,        // A thief takes fibers that their owner would have run sooner.
  look_round,  // A worker examines the shared queues before it runs the next fiber.
};

#ifdef WEFT_SHAKE

inline constexpr bool kOn = true;
// Returns WEFT_SHAKE_SEED, or a new seed in every process; 0 disables shaking.
[[nodiscard]] std::uint64_t seed() noexcept;
// Returns true at random. `point` determines how often, and the seed determines when.
[[nodiscard]] bool chance(Point point) noexcept;
// Returns a random number in [0, bound); returns `usual` in builds without -Dshake=true.
[[nodiscard]] std::uint32_t choose(std::uint32_t bound, std::uint32_t usual) noexcept;
// Spins, yields the processor or sleeps, for up to a tenth of a millisecond; usually does nothing.
void delay() noexcept;

// While an object of this class exists, no decision is random. Use it to test a decision that
// chance could change.
class Still {
 public:
  Still() noexcept;
  ~Still();
  Still(const Still&) = delete;
  Still& operator=(const Still&) = delete;
};

#else

inline constexpr bool kOn = false;
[[nodiscard]] constexpr std::uint64_t seed() noexcept { return 0; }
[[nodiscard]] constexpr bool chance(Point) noexcept { return false; }
[[nodiscard]] constexpr std::uint32_t choose(std::uint32_t, std::uint32_t usual) noexcept {
  return usual;
}
constexpr void delay() noexcept {}

class Still {
 public:
  Still() noexcept {}  // User-provided, so that no compiler reports an object as unused.
};

#endif

}  // namespace weft::base::shake
