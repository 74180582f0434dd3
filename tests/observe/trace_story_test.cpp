#include "observe/trace_story.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>
#include <weft/detail/waist.hpp>

using weft::detail::TraceKind;
using weft::observe::Slice;
using weft::observe::TraceStory;
using weft::scheduler::Recording;
using weft::scheduler::TraceRing;

namespace {

struct FromPlain {};
struct FromFiber {};

constexpr std::size_t kEvents = 64;  // Events in a ring.
constexpr std::uint64_t kRecord = 4096;

// Makes a recording, which a test writes event by event; a tick is a nanosecond.
class Written {
 public:
  explicit Written(std::size_t rings) {
    recording_.ticks = {0, 10'000};
    recording_.nanoseconds = {0, 10'000};
    for (std::size_t i = 0; i < rings; ++i) {
      rings_.push_back(std::make_shared<TraceRing>(kEvents, 0, static_cast<int>(i)));
      recording_.rings.push_back(rings_.back());
    }
  }

  void spawn(std::size_t ring, std::uint64_t time, const std::type_info& type) {
    const auto address = reinterpret_cast<std::uintptr_t>(&type);
    rings_[ring]->put({time, TraceKind::spawn, 0, 0, {kRecord, 0, address}});
  }
  void run(std::size_t ring, std::uint64_t time, std::uint64_t id) {
    rings_[ring]->put({time, TraceKind::run, 0, 0, {kRecord, id}});
    rings_[ring]->put({time + 1, TraceKind::end, 0, 0, {kRecord, id}});
  }
  // Records enough events from `time` on to overwrite all earlier events.
  void overflow(std::size_t ring, std::uint64_t time) {
    for (std::uint64_t i = 0; i < 2 * kEvents; ++i) {
      rings_[ring]->put({time + i, TraceKind::poll, 0, 0, {0}});
    }
  }
  [[nodiscard]] TraceStory story() const { return TraceStory(recording_); }

 private:
  std::vector<std::shared_ptr<TraceRing>> rings_;
  Recording recording_;
};

// Returns the name of a fiber's run.
std::string name_of(const TraceStory& story, std::uint64_t fiber) {
  const auto found = std::ranges::find(story.slices, fiber, &Slice::fiber);
  return found == story.slices.end() ? "" : found->name;
}

}  // namespace

TEST_SUITE_BEGIN("observe/trace_story");

TEST_CASE("a fiber in a trace has its callable's name and an arrow from its spawner") {
  Written written(2);
  written.spawn(0, 10, typeid(FromPlain));
  written.run(1, 100, 7);
  const TraceStory story = written.story();
  CHECK(story.lost == 0);
  CHECK(name_of(story, 7) == "(anonymous namespace)::FromPlain");
  REQUIRE(story.arrows.size() == 1);
  CHECK(story.arrows.front().from == 10);
  CHECK(story.arrows.front().to == 100);
}

TEST_CASE("a trace does not give a fiber the name of an ended fiber that had the same record") {
  Written written(2);
  written.spawn(0, 10, typeid(FromPlain));  // It ran and ended; another fiber reuses its record.
  written.overflow(1, 100);
  written.run(1, 500, 8);
  written.spawn(0, 600, typeid(FromFiber));
  written.run(1, 700, 9);
  const TraceStory story = written.story();
  CHECK(story.lost > 0);
  CHECK(name_of(story, 8) == "fiber 8");
  CHECK(name_of(story, 9) == "(anonymous namespace)::FromFiber");
  REQUIRE(story.arrows.size() == 1);
  CHECK(story.arrows.front().from == 600);
}

TEST_CASE("a trace begins after the newest event that any worker's ring has lost") {
  Written written(2);
  written.overflow(1, 1000);
  written.spawn(0, 200, typeid(FromPlain));
  written.run(0, 300, 8);  // This may be another fiber, because the other worker's events are lost.
  const TraceStory story = written.story();
  CHECK(name_of(story, 8) == "fiber 8");
  CHECK(story.arrows.empty());
}

TEST_CASE("a trace omits events that arrive while the rings are read") {
  Written written(1);
  written.run(0, 9'000, 1);
  written.run(0, 20'000, 2);
  const TraceStory story = written.story();
  CHECK(name_of(story, 1) == "fiber 1");
  CHECK(name_of(story, 2).empty());
}

TEST_SUITE_END();
