#include "observe/trace_story.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <typeinfo>
#include <utility>
#include <weft/detail/waist.hpp>

#include "observe/fiber_list.hpp"
#include "runtime/symbols.hpp"

namespace weft::observe {

namespace {

using detail::TraceKind;
using scheduler::Recording;
using scheduler::TraceEvent;
using scheduler::TraceRing;

constexpr std::int64_t kEndOfTime = std::numeric_limits<std::int64_t>::max();

std::string text_of(const TraceEvent& event) {
  std::array<char, TraceEvent::kText + 1> text{};
  std::memcpy(text.data(), event.words.data(), TraceEvent::kText);
  return text.data();
}

std::string pool_of(const TraceEvent& event) {
  const std::string name = text_of(event);
  return name.empty() ? "a pool without a name" : name;
}

// Converts an address that passed through the ring as a number.
const void* address_of(std::uint64_t number) { return reinterpret_cast<const void*>(number); }

std::string describe_spawn(const TraceEvent& event) {
  const auto* type = static_cast<const std::type_info*>(address_of(event.words[2]));
  if (type != nullptr) return runtime::describe_type(*type);
  if (event.words[1] == 0) return {};
  // The call itself precedes its return address.
  return runtime::describe_address(static_cast<const char*>(address_of(event.words[1])) - 1);
}

std::string reason_of(const TraceEvent& event) {
  return to_string(static_cast<detail::WaitReason>(event.reason));
}

std::string track_name(const TraceRing& ring, std::size_t runtimes) {
  if (ring.worker() < 0) return "plain threads";
  std::string name("worker ");
  name.append(std::to_string(ring.worker()));
  if (runtimes > 1) name.append(" of runtime ").append(std::to_string(ring.runtime()));
  return name;
}

}  // namespace

TraceStory::TraceStory(const Recording& recording) {
  collect(recording);
  // Names come first: a fiber may be named after it has run for a while, or before the trace.
  for (const FiberEntry& fiber : list_fibers()) {
    if (fiber.has_started) names_[static_cast<std::uint32_t>(fiber.id)] = fiber.name;
    if (!fiber.request.empty()) {
      requests_[fiber.id] = {fiber.request, fiber.request_began - recording.nanoseconds[0]};
    }
  }
  for (const Event& event : events_) {
    if (event.what.kind == TraceKind::name) names_[event.what.extra] = text_of(event.what);
  }
  for (const Event& event : events_) {
    tell(event);
    if (event.time >= complete_from_) continue;
    known_.clear();
    tasks_.clear();
  }
  // Adds the spans that have not ended yet.
  const std::int64_t now = events_.empty() ? 0 : events_.back().time;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    end_run({now, i, {}}, "");
    if (open_[i].is_asleep) slices.push_back({i, open_[i].asleep_since, now, 0, "asleep", {}});
  }
}

void TraceStory::collect(const Recording& recording) {
  const auto ticks = static_cast<double>(recording.ticks[1] - recording.ticks[0]);
  const auto elapsed = static_cast<double>(recording.nanoseconds[1] - recording.nanoseconds[0]);
  const double scale = ticks > 0 ? elapsed / ticks : 1;
  std::set<unsigned> runtimes;
  for (const auto& ring : recording.rings) {
    if (ring != nullptr && ring->worker() >= 0) runtimes.insert(ring->runtime());
  }
  for (const auto& ring : recording.rings) {
    if (ring == nullptr) continue;
    const TraceRing::Kept kept = ring->read();
    const std::size_t first = events_.size();
    for (const TraceEvent& event : kept.events) {
      // Rings are read one after the other, so only the last ring has the latest events.
      if (event.ticks > recording.ticks[1]) break;
      const auto since = static_cast<double>(event.ticks - recording.ticks[0]);
      events_.push_back({static_cast<std::int64_t>(since * scale), tracks.size(), event});
    }
    lost += kept.lost;
    if (kept.lost > 0) {
      const bool has_any = first < events_.size();
      complete_from_ = std::max(complete_from_, has_any ? events_[first].time : kEndOfTime);
    }
    tracks.push_back(track_name(*ring, runtimes.size()));
  }
  open_.resize(tracks.size());
  std::ranges::stable_sort(events_, {}, &Event::time);
}

// Returns the fiber's given name, or the name of its callable, or its number.
std::string TraceStory::name_of(std::uint64_t record, std::uint64_t id) {
  const auto named = names_.find(static_cast<std::uint32_t>(id));
  if (named != names_.end() && !named->second.empty()) return named->second;
  const std::string& label = known_[record].label;
  return label.empty() ? "fiber " + std::to_string(id) : label;
}

void TraceStory::begin_run(const Event& event) {
  Track& track = open_[event.track];
  const std::uint64_t record = event.what.words[0];
  track.is_open = true;
  track.slice = {event.track,         std::max(event.time, track.last),     0,
                 event.what.words[1], name_of(record, event.what.words[1]), {}};
  Known& known = known_[record];
  if (!std::exchange(known.is_ready, false) || known.ready_at > track.slice.start) return;
  arrows.push_back({known.ready_track, known.ready_at, event.track, track.slice.start});
}

void TraceStory::end_run(const Event& event, const std::string& outcome) {
  Track& track = open_[event.track];
  if (!std::exchange(track.is_open, false)) return;
  track.slice.end = std::max(event.time, track.slice.start);
  track.slice.outcome = outcome;
  const auto request = requests_.find(track.slice.fiber);
  if (request != requests_.end() && request->second.began < track.slice.end) {
    track.slice.request = request->second.text;
  }
  track.last = track.slice.end;
  slices.push_back(std::move(track.slice));
}

void TraceStory::mark(const Event& event, std::string name) {
  marks.push_back({event.track, event.time, std::move(name)});
}

// Arrows begin in slices. So a thread that wakes a fiber while it runs none, because of the clock
// or the kernel, has a short slice for the wake.
void TraceStory::tell_ready(const Event& event) {
  Known& known = known_[event.what.words[0]];
  if (event.what.kind == TraceKind::spawn) {
    known.label = describe_spawn(event.what);
  } else if (event.what.reason == static_cast<std::uint8_t>(detail::WaitReason::yield)) {
    return;  // The fiber continues by itself.
  }
  Track& track = open_[event.track];
  std::int64_t time = event.time;
  if (!track.is_open) {
    time = std::max(time, track.last);
    if (track.is_asleep) {  // A short slice around the wake.
      slices.push_back({event.track, track.asleep_since, time, 0, "asleep", {}});
      track.asleep_since = time + 1;
    }
    slices.push_back({event.track, time, time + 1, 0, "wakes", {}});
    track.last = time + 1;
  }
  known.is_ready = true;
  known.ready_track = event.track;
  known.ready_at = std::max(time, track.is_open ? track.slice.start : time);
}

void TraceStory::tell_pool(const Event& event) {
  const std::string pool = pool_of(event.what);
  const Track& track = open_[event.track];
  // Returns the runner: a fiber, on whichever thread, or the thread.
  const std::pair<std::size_t, std::uint64_t> who{track.is_open ? 0 : event.track + 1,
                                                  track.is_open ? track.slice.fiber : 0};
  if (event.what.kind == TraceKind::pool_start) {
    tasks_[who] = {event.track, event.time, pool};
    return;
  }
  const auto found = tasks_.find(who);
  if (found == tasks_.end()) return;  // The slice's start was overwritten.
  const Task& task = found->second;
  spans.push_back({task.start, event.time, task.track, event.track, task.pool});
  tasks_.erase(found);
}

void TraceStory::tell(const Event& event) {
  Track& track = open_[event.track];
  switch (event.what.kind) {
    case TraceKind::spawn:
    case TraceKind::ready:
      return tell_ready(event);
    case TraceKind::run:
      end_run(event, "");
      return begin_run(event);
    case TraceKind::leave:
      return end_run(event, "parked: " + reason_of(event.what));
    case TraceKind::inlined:
      return end_run(event, "runs another in place: " + reason_of(event.what));
    case TraceKind::end:
      return end_run(event, "ended");
    case TraceKind::idle:
      return end_run(event, "");
    case TraceKind::name:
      return;
    case TraceKind::steal:
      return mark(event, "steals from worker " + std::to_string(event.what.words[0]));
    case TraceKind::poll:
      return mark(event, "poll: " + std::to_string(event.what.words[0]));
    case TraceKind::sleep:
      track.is_asleep = true;
      track.asleep_since = std::max(event.time, track.last);
      return;
    case TraceKind::awake:
      if (!std::exchange(track.is_asleep, false)) return;
      track.asleep_since = std::max(track.asleep_since, track.last);
      track.last = std::max(event.time, track.asleep_since);
      slices.push_back({event.track, track.asleep_since, track.last, 0, "asleep", {}});
      return;
    case TraceKind::pool_start:
    case TraceKind::pool_end:
      return tell_pool(event);
    case TraceKind::pool_submit:
      return mark(event, "submit: " + pool_of(event.what));
    case TraceKind::pool_refuse:
      return mark(event, "refused: " + pool_of(event.what));
  }
}

}  // namespace weft::observe
