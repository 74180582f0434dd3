// What the model varies.
#pragma once

#include <cstdint>
#include <string>

#include "bench/model/units.hpp"

namespace weft::bench::model {

// In which order a thief comes to its victims.
enum class VictimOrder : std::uint8_t {
  random_start,  // Round the ring of workers, from a random one on.
  ring,          // Round the ring, from its neighbour on.
  last_first,    // The one that had something last time, then round the ring from a random one on.
  random,        // As many random ones as there are workers.
};

// The choices of the scheduler. The defaults are what it does: scheduler/worker_search.cpp,
// idle_set.cpp.
struct Policy {
  Time search_time = 30 * kMicrosecond;
  Time worth_stealing = 5 * kMicrosecond;
  // Of all workers, how many may search at a time; one may in any case.
  double searching_share = 0.5;
  unsigned most_searching = UINT32_MAX;  // And never more than so many.
  VictimOrder order = VictimOrder::random_start;
  // New work wakes a sleeper while fewer than this part of all workers search; 0: while nobody
  // does.
  double wake_share = 0;
  // A searcher that has found more than one fiber wakes so many others, whoever searches.
  unsigned wakes_of_a_thief = 0;
  bool steals_half = true;
  // A thief that another one was faster than tries the same queue again, as long as it has fibers.
  bool retries = true;
  // How long the last searcher naps while others make progress: the longest of its doubling naps.
  Time longest_nap = kMillisecond;
  // Who adds work of its own to a queue that is at least so long ends a nap.
  unsigned push_ends_nap = UINT32_MAX;
  // Whether those who add work look at a line of its own, which is written only when the answer
  // changes, instead of at the number of searchers and the sleepers' bits.
  bool has_hint_line = false;
  // A thief passes over its first look where the queue is longer than this: no owner gets to its
  // end within worth_stealing.
  unsigned surely_waiting = UINT32_MAX;
};

// Changes the choice called `name`; throws std::invalid_argument if there is none.
void set_choice(Policy& policy, const std::string& name, const std::string& value);

}  // namespace weft::bench::model
