#include "base/shake.hpp"

#include <cstdlib>
#include <weft/detail/atomic.hpp>
#include <weft/detail/simulated.hpp>

#include "base/random.hpp"
#include "base/thread.hpp"

namespace weft::base::shake {

using detail::relaxed;

namespace {

// Returns a number n: on average, one of n decisions is true.
std::uint32_t rarity_of(Point point) noexcept {
  switch (point) {
    case Point::delay:
      return 8;
    case Point::give_way:
      return 6;
    case Point::wake_last:
      return 3;
    case Point::wake_apart:
      return 6;
    case Point::run_apart:
      return 3;
    case Point::rouse:
      return 8;
    case Point::pass_by:
      return 3;
    case Point::grab:
      return 4;
    case Point::look_round:
      return 12;
  }
  return 2;
}

std::uint64_t choose_seed() noexcept {
  if (const char* text = std::getenv("WEFT_SHAKE_SEED")) return std::strtoull(text, nullptr, 10);
  return thread_random() % 1'000'000'000 + 1;
}

// Relaxed: a count that publishes no other data.
detail::Atomic<std::uint32_t> stills{0};

// A thread's random numbers depend on the seed and on the order in which threads first call this
// function. Not inlined, so that no caller keeps the generator's address across a switch.
[[gnu::noinline]] std::uint32_t draw(std::uint32_t bound) noexcept {
  static constinit detail::Atomic<std::uint64_t> threads{0};
  static thread_local Random random((seed() + threads.fetch_add(1, relaxed)) *
                                    0x9E3779B97F4A7C15ULL);
  return random.below(bound);
}

// Returns true in a simulation, which makes all decisions itself, and while a Still exists.
bool is_still() noexcept {
  return stills.load(relaxed) != 0 || seed() == 0 || detail::is_simulated();
}

}  // namespace

std::uint64_t seed() noexcept {
  static const std::uint64_t chosen = choose_seed();
  return chosen;
}

bool chance(Point point) noexcept { return !is_still() && draw(rarity_of(point)) == 0; }

std::uint32_t choose(std::uint32_t bound, std::uint32_t usual) noexcept {
  return is_still() ? usual : draw(bound);
}

void delay() noexcept {
  if (!chance(Point::delay)) return;
  const std::uint32_t kind = draw(16);
  if (kind == 0) {
    sleep_thread(static_cast<long>(draw(100'000)));
  } else if (kind < 8) {
    yield_processor();
  } else {
    for (std::uint32_t i = draw(400); i > 0; --i) detail::pause_cpu();
  }
}

Still::Still() noexcept { stills.fetch_add(1, relaxed); }
Still::~Still() { stills.fetch_sub(1, relaxed); }

}  // namespace weft::base::shake
