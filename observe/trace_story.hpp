// Interprets the events of a trace in their context.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/dump.hpp"
#include "scheduler/record/trace_book.hpp"

namespace weft::observe {

// An item that the trace shows. Times are in nanoseconds since the start of the trace.
struct Slice {
  std::size_t track = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint64_t fiber = 0;  // Its id; 0: no fiber, see name.
  std::string name;
  std::string outcome;  // Why it ended: "parked: mutex".
  std::string request;  // The request in progress; empty if none.
};

// An arrow leads from a moment inside a slice to the start of another slice.
struct Arrow {
  std::size_t from_track = 0;
  std::int64_t from = 0;
  std::size_t to_track = 0;
  std::int64_t to = 0;
};

struct Mark {
  std::size_t track = 0;
  std::int64_t time = 0;
  std::string name;
};

// A task of a pool, which may be on several tracks.
struct PoolSpan {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::size_t from_track = 0;
  std::size_t to_track = 0;
  std::string pool;
};

// Reads events in the order of their times, and matches events that belong together.
class TraceStory {
 public:
  explicit TraceStory(const scheduler::Recording& recording);

  std::vector<std::string> tracks;
  std::vector<Slice> slices;
  std::vector<Arrow> arrows;
  std::vector<Mark> marks;
  std::vector<PoolSpan> spans;
  std::uint64_t lost = 0;  // The number of overwritten events.

 private:
  struct Event {
    std::int64_t time = 0;
    std::size_t track = 0;
    scheduler::TraceEvent what;
  };
  // The state of a fiber's record, which earlier fibers may have used.
  struct Known {
    std::string label;  // The type of its callable, or where it was spawned.
    bool is_ready = false;
    std::size_t ready_track = 0;
    std::int64_t ready_at = 0;
  };
  struct Track {
    bool is_open = false;
    Slice slice;
    bool is_asleep = false;
    std::int64_t asleep_since = 0;
    std::int64_t last = 0;  // When the last item so far ends.
  };
  struct Task {
    std::size_t track = 0;
    std::int64_t start = 0;
    std::string pool;
  };

  void collect(const scheduler::Recording& recording);
  void tell(const Event& event);
  void tell_ready(const Event& event);
  void tell_pool(const Event& event);
  void begin_run(const Event& event);
  void end_run(const Event& event, const std::string& outcome);
  void mark(const Event& event, std::string name);
  [[nodiscard]] std::string name_of(std::uint64_t record, std::uint64_t id);

  std::vector<Event> events_;
  // Earlier events are missing. They may have concerned any fiber, so the state that one event
  // gives for a record or task may be outdated at the next event.
  std::int64_t complete_from_ = 0;
  std::vector<Track> open_;
  std::unordered_map<std::uint64_t, Known> known_;        // The key is the record's address.
  std::unordered_map<std::uint32_t, std::string> names_;  // The key is the fiber's id.
  // Unanswered requests, and when they began, by the numbers of their fibers.
  std::unordered_map<std::uint64_t, runtime::RequestText> requests_;
  // The key is the track + 1 and 0 if there is no fiber; otherwise 0 and the fiber.
  std::map<std::pair<std::size_t, std::uint64_t>, Task> tasks_;
};

}  // namespace weft::observe
