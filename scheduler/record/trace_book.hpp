// The trace: the recent events of each worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>
#include <weft/detail/invariant.hpp>
#include <weft/detail/trace_event.hpp>

#include "base/ticks.hpp"

namespace weft::fibers {
struct Fiber;
}

namespace weft::scheduler {

// One event. The kind determines the meaning of `words`.
struct TraceEvent {
  static constexpr std::size_t kWords = 4;
  static constexpr std::size_t kText = kWords * sizeof(std::uint64_t);

  std::uint64_t ticks = 0;
  detail::TraceKind kind{};
  std::uint8_t reason = 0;  // A detail::WaitReason.
  std::uint32_t extra = 0;
  std::array<std::uint64_t, kWords> words{};
};

// Contains the newest events of one writer. If it is full, each new event overwrites the oldest.
// Invariants
//   I1  Only the owner adds events. head_ is the number of events that it has added so far.
//   I2  While the owner writes event n, it overwrites event n - size_. Not asserted, because
//       readers may read an event that is being overwritten; read() then drops it.
// Order
//   [slot]  put() stores each word (release) -> read() loads it (acquire): if the word is from a
//           later event, read() then loads a later head_, and drops its copy of the words.
//   [head]  put() stores head_ (release) -> read() loads it (acquire): read() sees the words of all
//           events that head_ counts.
class TraceRing {
 public:
  // `size` is a power of two.
  TraceRing(std::size_t size, unsigned runtime, int worker)
      : runtime_(runtime), worker_(worker), size_(size), slots_(new Slot[size]) {}

  // Owner only.
  void put(const TraceEvent& event) noexcept {
    const std::uint64_t head = head_.load(detail::relaxed);  // Relaxed: only the owner writes it.
    Slot& slot = slots_[head & (size_ - 1)];
    const std::uint64_t what = static_cast<std::uint64_t>(event.kind) |
                               std::uint64_t{event.reason} << 8 | std::uint64_t{event.extra} << 32;
    slot[0].store(event.ticks, detail::release);  // [slot]
    slot[1].store(what, detail::release);         // [slot]
    // These stores are not written as a loop. If the compiler did not unroll such a loop, it would
    // first store the event in a temporary object on the stack.
    static_assert(TraceEvent::kWords == 4);
    slot[2].store(event.words[0], detail::release);  // [slot]
    slot[3].store(event.words[1], detail::release);  // [slot]
    slot[4].store(event.words[2], detail::release);  // [slot]
    slot[5].store(event.words[3], detail::release);  // [slot]
    WEFT_INVARIANT(head_.load(detail::relaxed) == head, "TraceRing I1: only the owner puts events");
    head_.store(head + 1, detail::release);  // [head]
  }

  // The events in the ring, oldest first, and the number of earlier events that have been
  // overwritten.
  struct Kept {
    std::vector<TraceEvent> events;
    std::uint64_t lost = 0;
  };
  // Any thread may call it.
  [[nodiscard]] Kept read() const;
  [[nodiscard]] unsigned runtime() const noexcept { return runtime_; }
  // Returns -1 for the ring that plain threads share.
  [[nodiscard]] int worker() const noexcept { return worker_; }

 private:
  using Slot = std::array<detail::Atomic<std::uint64_t>, 2 + TraceEvent::kWords>;

  const unsigned runtime_;
  const int worker_;
  const std::uint64_t size_;
  const std::unique_ptr<Slot[]> slots_;
  detail::Atomic<std::uint64_t> head_{0};
};

// A worker's access to the trace. Owner: the worker's thread.
class TraceWriter {
 public:
  // Must be called when detail::is_tracing() may have changed. `runtime` distinguishes runtimes.
  void look(unsigned runtime, unsigned worker) noexcept;
  [[nodiscard]] bool is_on() const noexcept { return is_on_; }
  // Requires that is_on() returns true.
  void put(detail::TraceKind kind, std::uint64_t first = 0, std::uint64_t second = 0,
           std::uint64_t third = 0, std::uint8_t reason = 0) noexcept {
    put_at(base::ticks(), kind, first, second, third, reason);
  }
  void put_at(std::uint64_t ticks, detail::TraceKind kind, std::uint64_t first = 0,
              std::uint64_t second = 0, std::uint64_t third = 0, std::uint8_t reason = 0) noexcept {
    ring_->put({ticks, kind, reason, 0, {first, second, third}});
  }
  void put_text(detail::TraceKind kind, std::uint64_t fiber, std::string_view text) noexcept;

 private:
  bool is_on_ = false;
  std::uint64_t recording_ = 0;  // The number of the recording to which ring_ belongs.
  std::shared_ptr<TraceRing> ring_;
};

// These functions affect the whole process. Any thread may call them.

// Discards the current recording and begins a new one, with `events_per_worker` events for each
// worker, rounded up to a power of two, at least 64. Throws std::bad_alloc.
void start_tracing(std::size_t events_per_worker);
void stop_tracing() noexcept;
// These functions record events that no worker records. Call them only if is_tracing() is true.
void trace_from_outside(const TraceEvent& event) noexcept;
// Records a spawn or a wake by a thread that is not a worker of the fiber's runtime. Must be called
// before the fiber is published.
void trace_fiber_from_outside(detail::TraceKind kind, const fibers::Fiber& fiber) noexcept;
void trace_text_from_outside(detail::TraceKind kind, std::string_view text) noexcept;

struct Recording {
  // The time at the start of the recording and the present time, in ticks and in nanoseconds.
  std::array<std::uint64_t, 2> ticks{};
  std::array<std::int64_t, 2> nanoseconds{};
  std::vector<std::shared_ptr<const TraceRing>> rings;
};
// Throws std::bad_alloc.
[[nodiscard]] Recording recording();

}  // namespace weft::scheduler
