// Decides which fibers of another worker are worth taking.
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

// A worker's view of another worker at one moment. All values are hints.
struct Sight {
  bool is_open = false;         // Whether thieves may access its queue.
  std::uint32_t ring_head = 0;  // Counts the fibers that have left its ring.
  std::uint32_t ring_size = 0;
  std::int64_t queued = 0;  // The number of the other worker's queued fibers, not counting `next`.
  const fibers::Fiber* next = nullptr;
  std::uint64_t switches = 0;
  // The time in nanoseconds at which the worker's earliest timer is due.
  std::int64_t next_timer = std::numeric_limits<std::int64_t>::max();
};

// Decides from which other workers a worker takes fibers, and how many. It stores its last view of
// each other worker, so that it can distinguish waiting work from work in progress. Searcher
// carries out the decisions. Owner: the worker; all times are in nanoseconds.
class Thief {
 public:
  // The scheduler has at most `workers` workers, including this worker.
  Thief(unsigned workers, std::uint64_t seed) : random_(seed), looks_(workers) {}

  // Returns a random index below `count`: the first worker to check. If there are many workers,
  // each visits only some others; the random choice ensures that every worker is visited.
  [[nodiscard]] unsigned choose_first(unsigned count) noexcept { return random_.below(count); }

  // --- A search, by a worker without work ---

  // Returns whether to take new fibers before waiting fibers.
  [[nodiscard]] bool prefers_new_fibers() noexcept { return random_.below(2) == 0; }
  // Returns whether enough time has passed since this worker's last look at that worker.
  [[nodiscard]] bool may_look(unsigned victim, std::int64_t now) const noexcept;
  // Which fibers to take from the other worker: half of its ring, or its next fiber. The next fiber
  // is the second choice, because the other worker will usually run it soon.
  struct Loot {
    bool has_ring = false;
    bool has_next = false;  // Whether to take the next fiber if the ring yields none.
  };
  // Must be called only if may_look() has returned true.
  [[nodiscard]] Loot look(unsigned victim, const Sight& sight, std::int64_t now) noexcept;

  // --- Visits, by a worker with work ---

  // Returns whether visits to other workers are due. If so, further visits become due one period
  // later.
  [[nodiscard]] bool begin_visits(std::int64_t now) noexcept;
  // Which fibers to take from a worker that is stuck or has a longer queue.
  struct Relief {
    std::int64_t fibers = 0;     // 0 or less: none.
    bool has_next = false;       // Whether to take that worker's next fiber first.
    bool must_be_older = false;  // Whether the fibers must have waited longer than the visitor's.
  };
  struct Visit {
    bool runs_timers = false;
    // Whether the visitor should take fibers because that worker is stuck.
    bool is_stuck = false;
    // Whether that worker needs so long for its queued fibers that moving some is worth the cost.
    bool is_slow = false;
    std::int64_t queued = 0;

    // `mine` is the number of fibers in the visitor's queue, after the visitor has run timers.
    [[nodiscard]] Relief relief(std::int64_t mine) const noexcept;
  };
  // `is_done_soon` is true if the visitor will empty its own queue before its next look.
  [[nodiscard]] Visit visit(unsigned other, const Sight& sight, const ThreadFacts& thread,
                            bool is_done_soon, std::int64_t now) noexcept;

 private:
  // What this worker saw at its last look at another worker.
  struct Look {
    std::int64_t time = 0;
    std::uint32_t ring_head = 0;
    std::uint64_t switches = 0;
    const fibers::Fiber* next = nullptr;
    // The thread's processor time when is_stuck() first saw the current fiber; 0: not yet read.
    std::int64_t processor_time = 0;
    // The time at which this worker last read the other thread's state, or 0 if it never has.
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
