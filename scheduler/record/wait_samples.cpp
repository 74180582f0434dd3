#include "scheduler/record/wait_samples.hpp"

#include <algorithm>
#include <array>
#include <weft/deadline.hpp>

namespace weft::scheduler {

using detail::acquire;
using detail::relaxed;
using detail::release;
using fibers::Fiber;

detail::Atomic<WaitReasons> recorded_waits{0};

namespace {

constexpr std::size_t kWaits = 4096;
constexpr std::size_t kProbes = 8;  // The number of table entries in a cache line.

// The holder of a table entry is the address of a waiting fiber, or one of these values.
constexpr std::uintptr_t kFree = 0;   // The entry is unused.
constexpr std::uintptr_t kBusy = 1;   // A thread is reading or writing the sample in the entry.
constexpr std::uintptr_t kEnded = 2;  // The wait has ended, and its sample is complete.

// The table of the sampled waits. A fiber's address determines which entries the fiber may use. The
// table is never freed, because a worker may notice late that a recording has ended.
// Order
//   [wait]  begin_wait() stores the fiber (release) -> runs() or finish() stores kBusy (acquire):
//           the caller sees the whole sample. runs() stores kEnded (release) -> drain() stores
//           kBusy (acquire): drain() sees the duration. drain() stores kFree (release) ->
//           begin_wait() stores kBusy (acquire): begin_wait() writes a new sample only after
//           drain() has read the old one.
struct WaitTable {
  std::array<detail::Atomic<std::uintptr_t>, kWaits> holders{};
  std::array<WaitSample, kWaits> samples;
  std::array<std::int64_t, kWaits> since;
};

// Order
//   [table]  WaitRecording() stores wait_table (release) -> begin_wait() or runs() loads it
//            (acquire): the worker sees an initialized table.
detail::Atomic<WaitTable*> wait_table{nullptr};
// Relaxed: a count.
detail::Atomic<std::uint64_t> lost_waits{0};

std::uintptr_t holder_of(const Fiber& fiber) noexcept {
  return reinterpret_cast<std::uintptr_t>(&fiber);
}

std::size_t first_place(const Fiber& fiber) noexcept {
  constexpr std::uint64_t kMixer = 0x9E3779B97F4A7C15;
  return (holder_of(fiber) * kMixer >> 52) / kProbes * kProbes;
}
static_assert(std::size_t{1} << (64 - 52) == kWaits);

// If `holder` still holds the entry, marks the entry as busy and returns true.
bool take_place(WaitTable& table, std::size_t place, std::uintptr_t holder) noexcept {
  return table.holders[place].compare_exchange_strong(holder, kBusy, acquire, relaxed);  // [wait]
}

// Takes the fiber's table entry and returns its index, or returns kWaits if the fiber has none.
std::size_t take_place_of(WaitTable& table, const Fiber& fiber) noexcept {
  const std::uintptr_t holder = holder_of(fiber);
  const std::size_t first = first_place(fiber);
  for (std::size_t place = first; place < first + kProbes; ++place) {
    if (table.holders[place].load(relaxed) == holder && take_place(table, place, holder)) {
      return place;
    }
  }
  return kWaits;
}

std::size_t take_free_place(WaitTable& table, const Fiber& fiber) noexcept {
  const std::size_t first = first_place(fiber);
  for (std::size_t place = first; place < first + kProbes; ++place) {
    if (table.holders[place].load(relaxed) == kFree && take_place(table, place, kFree)) {
      return place;
    }
  }
  return kWaits;
}

void leave_place(WaitTable& table, std::size_t place, std::uintptr_t holder) noexcept {
  table.holders[place].store(holder, release);  // [wait]
}

// Returns the call stack of a fiber, without the calls that record the wait.
fibers::Backtrace calls_from(const void* caller, const fibers::Stack& stack) noexcept {
  fibers::Backtrace calls = fibers::calls_here(stack);
  const auto end = calls.frames.begin() + static_cast<std::ptrdiff_t>(calls.count);
  const auto first = std::find(calls.frames.begin(), end, caller);
  if (first == end) return calls;
  std::copy(first, end, calls.frames.begin());
  calls.count = static_cast<std::size_t>(end - first);
  return calls;
}

// No fiber parks for the reason `none`, so the workers only record which fibers run, and do not
// sample waits.
constexpr WaitReasons kOnlyRuns = reasons_of(detail::WaitReason::none);

}  // namespace

void WaitSampler::look() noexcept {
  const WaitReasons reasons = recorded_waits.load(relaxed);
  if (reasons == reasons_) return;
  *this = {};
  reasons_ = reasons;
}

void WaitSampler::leaves(const Fiber& fiber, const void* caller) noexcept {
  const auto reason = static_cast<detail::WaitReason>(fiber.reason());
  if (fiber.state.load(relaxed) != fibers::FiberState::parked) return;
  if ((reasons_ & reasons_of(reason)) != 0 && --left_ == 0) begin_wait(fiber, caller);
}

// Halves the sampling rate if a period has many samples, and doubles it if a period has few.
void WaitSampler::adapt(std::int64_t now) noexcept {
  constexpr std::int64_t kPeriod = 10'000'000;
  constexpr std::uint32_t kMany = 16;
  constexpr std::uint32_t kFew = 4;
  constexpr std::uint32_t kLongestInterval = 1024;
  if (taken_ >= kMany) {
    interval_ = std::min(interval_ * 2, kLongestInterval);
  } else if (now - period_ < kPeriod) {
    return;
  } else if (taken_ < kFew) {
    interval_ = std::max(interval_ / 2, std::uint32_t{1});
  }
  taken_ = 0;
  period_ = now;
}

// Runs on the stack of the fiber, before any waker can access the fiber.
void WaitSampler::begin_wait(const Fiber& fiber, const void* caller) noexcept {
  const std::uint32_t weight = interval_;
  const std::int64_t now = Deadline::now_nanoseconds();
  ++taken_;
  adapt(now);
  left_ = interval_;
  WaitTable* const table = wait_table.load(acquire);  // [table]
  const fibers::Stack* const stack = fiber.stack.load(relaxed);
  if (table == nullptr || stack == nullptr) return;
  // The fiber still holds the entry for its previous wait if the worker that ran it after that wait
  // was not sampling yet.
  std::size_t place = take_place_of(*table, fiber);
  if (place == kWaits) place = take_free_place(*table, fiber);
  if (place == kWaits) {
    lost_waits.fetch_add(weight, relaxed);
    return;
  }
  WaitSample& sample = table->samples[place];
  sample.weight = weight;
  sample.reason = static_cast<detail::WaitReason>(fiber.reason());
  sample.name = stack->name.copy();
  sample.type = fiber.task.type_hint();
  sample.calls = calls_from(caller, *stack);
  table->since[place] = now;
  leave_place(*table, place, holder_of(fiber));
}

void WaitSampler::runs(const Fiber& fiber) noexcept {
  WaitTable* const table = wait_table.load(acquire);  // [table]
  if (table == nullptr) return;
  const std::size_t place = take_place_of(*table, fiber);
  if (place == kWaits) return;
  table->samples[place].nanoseconds = Deadline::now_nanoseconds() - table->since[place];
  leave_place(*table, place, kEnded);
}

WaitRecording::WaitRecording() {
  if (wait_table.load(relaxed) == nullptr) {
    wait_table.store(new WaitTable, release);  // [table]
  }
  finish([](const WaitSample&) {});  // Drops waits of the previous recording.
  lost_waits.store(0, relaxed);
  recorded_waits.store(kOnlyRuns, relaxed);
}

WaitRecording::~WaitRecording() { recorded_waits.store(0, relaxed); }

void WaitRecording::begin(WaitReasons reasons) noexcept {
  recorded_waits.store(reasons | kOnlyRuns, relaxed);
}

void WaitRecording::drain(const See& see) {
  WaitTable& table = *wait_table.load(relaxed);
  for (std::size_t place = 0; place < kWaits; ++place) {
    if (table.holders[place].load(relaxed) != kEnded || !take_place(table, place, kEnded)) continue;
    see(table.samples[place]);
    leave_place(table, place, kFree);
  }
}

void WaitRecording::finish(const See& see) {
  recorded_waits.store(0, relaxed);
  drain(see);
  WaitTable& table = *wait_table.load(relaxed);
  const std::int64_t now = Deadline::now_nanoseconds();
  for (std::size_t place = 0; place < kWaits; ++place) {
    const std::uintptr_t holder = table.holders[place].load(relaxed);
    if (holder == kFree || holder == kBusy || !take_place(table, place, holder)) continue;
    WaitSample& sample = table.samples[place];
    if (holder != kEnded) sample.nanoseconds = now - table.since[place];
    see(sample);
    leave_place(table, place, kFree);
  }
}

std::uint64_t WaitRecording::lost() noexcept { return lost_waits.load(relaxed); }

}  // namespace weft::scheduler
