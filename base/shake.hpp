// Decisions by chance, for tests: only in builds with -Dshake=true.
#pragma once

#include <cstdint>

namespace weft::base::shake {

// The decisions that may be left to chance. None of it is wrong, however unlikely: a correct
// program bears all of them, at any time and in any order.
enum class Point : std::uint8_t {
  delay,       // Another thread gets further meanwhile. At any place, with any lock held.
  give_way,    // Other fibers run first. Only where the caller may park.
  wake_last,   // A woken fiber goes behind all that is ready, instead of in front.
  wake_apart,  // A woken fiber goes to the queue that all workers share.
  run_apart,   // A fiber that could be run in place is not.
  rouse,       // A sleeping thread is woken without reason.
  pass_by,     // A thief leaves a victim alone.
  grab,        // A thief takes what its owner would have got to sooner.
  look_round,  // A worker looks at what is shared, before it runs the next fiber.
};

#ifdef WEFT_SHAKE

inline constexpr bool kOn = true;
// WEFT_SHAKE_SEED, or a new one in every process; 0 shakes nothing.
[[nodiscard]] std::uint64_t seed() noexcept;
// Now and then true: how often depends on the point, when depends on the seed.
[[nodiscard]] bool chance(Point point) noexcept;
// One of [0, bound), which is `usual` in builds that are not shaken.
[[nodiscard]] std::uint32_t choose(std::uint32_t bound, std::uint32_t usual) noexcept;
// Spins, yields the processor or sleeps, for up to a tenth of a millisecond; mostly does nothing.
void delay() noexcept;

// While one lives, nothing is shaken, on any thread: for tests of a decision that chance may turn.
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
  Still() noexcept {}  // User-provided, so that no compiler calls it unused.
};

#endif

}  // namespace weft::base::shake
