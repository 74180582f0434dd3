// What is worth taking from another worker.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/random.hpp"
#include "scheduler/thread_facts.hpp"

namespace weft::fibers {
struct Fiber;
}

namespace weft::scheduler {

// What a worker sees of another one at a moment. All are hints.
struct Sight {
  bool is_open = false;         // Thieves may come to its queue.
  std::uint32_t ring_head = 0;  // Counts the fibers that have left its ring.
  std::uint32_t ring_size = 0;
  std::int64_t queued = 0;  // All that it has, except for the next fiber.
  const fibers::Fiber* next = nullptr;
  std::uint64_t switches = 0;
  // Nanoseconds; when its earliest timer is due.
  std::int64_t next_timer = std::numeric_limits<std::int64_t>::max();
};

// Decides for one worker from whom to take fibers, and how many. It remembers how it has seen each
// other worker, to tell work that waits from work that is being done. The worker carries out what
// it decides. Owner: the worker; all times are nanoseconds.
class Thief {
 public:
  // There are `workers` at most, itself included.
  Thief(unsigned workers, std::uint64_t seed) : random_(seed), looks_(workers) {}

  // The one of `count` workers with which to begin. With many workers each visits some of the
  // others, so that some worker visits each.
  [[nodiscard]] unsigned choose_first(unsigned count) noexcept { return random_.below(count); }

  // --- A search, by a worker without work ---

  // Whether to take new fibers before waiting ones.
  [[nodiscard]] bool prefers_new_fibers() noexcept { return random_.below(2) == 0; }
  // Whether enough time has passed since the last look at that worker for another one.
  [[nodiscard]] bool may_look(unsigned victim, std::int64_t now) const noexcept;
  // What to take of that worker's ring and its next fiber, which are being worked on as a rule.
  struct Loot {
    bool has_ring = false;
    bool has_next = false;  // Unless the ring had some.
  };
  // Call it when may_look().
  [[nodiscard]] Loot look(unsigned victim, const Sight& sight, std::int64_t now) noexcept;

  // --- Visits, by a worker with work ---

  // Whether it is time to visit others; then it counts as done.
  [[nodiscard]] bool begin_visits(std::int64_t now) noexcept;
  // What to take from a worker whose queue is the longer one, or which is stuck.
  struct Relief {
    std::int64_t fibers = 0;     // 0 or less: none.
    bool has_next = false;       // First its next fiber.
    bool must_be_older = false;  // None unless it has waited longer than the visitor's.
  };
  struct Visit {
    bool runs_timers = false;
    // Whether what waits there should not wait for its owner.
    bool is_stuck = false;
    // Whether it waits longer there than a visit is worth.
    bool is_slow = false;
    std::int64_t queued = 0;

    // `mine` fibers are queued at the visitor, after it has run timers.
    [[nodiscard]] Relief relief(std::int64_t mine) const noexcept;
  };
  // `is_done_soon` says that the visitor's own queue is done by its next look.
  [[nodiscard]] Visit visit(unsigned other, const Sight& sight, const ThreadFacts& thread,
                            bool is_done_soon, std::int64_t now) noexcept;

 private:
  // How another worker was seen.
  struct Look {
    std::int64_t time = 0;
    std::uint32_t ring_head = 0;
    std::uint64_t switches = 0;
    const fibers::Fiber* next = nullptr;
    // Once it has seemed to be stuck: the processor time of its thread then, and when the kernel
    // was last asked what that waits for.
    std::int64_t processor_time = 0;
    std::int64_t asked = 0;
  };

  [[nodiscard]] static Look remember(const Sight& sight, std::int64_t now) noexcept;
  [[nodiscard]] static bool is_stuck(Look& look, const ThreadFacts& thread, bool is_done_soon,
                                     std::int64_t now) noexcept;

  std::int64_t last_visit_ = 0;
  base::Random random_;
  std::vector<Look> looks_;
};

}  // namespace weft::scheduler
