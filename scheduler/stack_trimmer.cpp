#include "scheduler/stack_trimmer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/membarrier.hpp"
#include "fibers/fiber.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/worker.hpp"

namespace weft::scheduler {

using detail::acquire;
using detail::relaxed;
using fibers::Fiber;
using fibers::FiberState;
using fibers::Stack;

namespace {

constexpr std::uintptr_t kPage = 4096;
// Fewer pages below the calls are not worth the system call.
constexpr std::size_t kDeepPages = 4;
// Nanoseconds that a fiber must be parked for, unless all workers sleep, or sweeps are closer.
constexpr std::int64_t kLong = 1'000'000'000;
// Of a step: records that are looked at, and fibers that are looked at closely.
constexpr std::size_t kRecords = 4096;
constexpr std::size_t kFibers = 256;
// Such portions while all workers sleep.
constexpr int kPortionsAtRest = 16;
constexpr std::size_t kGates = 512;
// Bytes for a signal's frames: the handler is one that does not ask for a stack of its own.
constexpr std::size_t kLobby = std::size_t{16} << 10;

std::uintptr_t page_of(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) & ~(kPage - 1);
}

// Gives back what is below the calls that end at `end`. Locked memory is refused, and kept.
void give_back(const Stack& stack, const char* end) noexcept {
  const std::uintptr_t live = page_of(end - fibers::kRedZone);
  const auto lowest = reinterpret_cast<std::uintptr_t>(stack.lowest);
  if (live > lowest) (void)madvise(stack.lowest, live - lowest, MADV_DONTNEED);
}

}  // namespace

// One mapping; of the lobbies no page is touched unless a signal comes at the very moment.
struct StackTrimmer::Memory {
  std::array<fibers::Gate, kGates> gates;
  std::array<Hung, kGates> hung;
  std::array<std::array<char, kLobby>, kGates> lobbies;
};

// A sanitizer and valgrind keep books of their own on the memory of stacks.
StackTrimmer::StackTrimmer(Scheduler& scheduler, std::int64_t pause) noexcept
    : scheduler_(scheduler),
      pause_(pause),
      refused_(pause <= 0 || !fibers::kHasGates || fibers::kSanitized ||
               fibers::SanitizerStack::watched_by_valgrind()) {}

StackTrimmer::~StackTrimmer() {
  if (memory_ == nullptr) return;
  std::destroy_at(memory_);
  munmap(memory_, sizeof(Memory));
}

bool StackTrimmer::make_gates() noexcept {
  if (memory_ != nullptr) return true;
  if (refused_ || !base::prepare_barriers()) return false;
  try {
    switches_.reserve(scheduler_.most_workers());
  } catch (const std::bad_alloc&) {
    return false;
  }
  void* memory = mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // Default-initialized: the lobbies are left as they are, and so have no pages.
  if (memory != MAP_FAILED) memory_ = ::new (memory) Memory;
  return memory_ != nullptr;
}

Deadline StackTrimmer::next_sweep(std::int64_t last_awake) const noexcept {
  if (refused_ || sweep_began_ > last_awake) return Deadline::never();
  return Deadline::at_nanoseconds(sweep_began_ + pause_);
}

void StackTrimmer::step(std::int64_t now) noexcept {
  if (refused_) return;
  switch (phase_) {
    case Phase::resting:
      if (now - sweep_began_ < pause_) return;
      sweep_began_ = now;
      place_ = 0;
      phase_ = Phase::looking;
      [[fallthrough]];
    case Phase::looking: {
      const int portions = scheduler_.all_are_asleep() ? kPortionsAtRest : 1;
      at_end_ = false;
      for (int i = 0; i < portions && !at_end_ && count_ < kGates; ++i) at_end_ = look();
      if (count_ == 0 && (at_end_ || refused_)) {
        phase_ = Phase::resting;
      } else if (at_end_ || count_ == kGates) {
        hung_since_ = now;
        check_all();
        phase_ = Phase::waiting;
      }
      return;
    }
    case Phase::waiting:
      if (now - hung_since_ < std::min(kLong, pause_) && !scheduler_.all_are_asleep()) return;
      if (!grace_is_over()) return;
      for (std::size_t i = 0; i < count_; ++i) trim(i);
      if (!base::barrier_all_threads()) refused_ = true;
      begin_grace();
      phase_ = Phase::leaving;
      return;
    case Phase::leaving:
      if (!grace_is_over()) return;
      count_ = 0;
      phase_ = at_end_ ? Phase::resting : Phase::looking;
      return;
  }
}

// At some more records; true when there are no more.
bool StackTrimmer::look() noexcept {
  std::array<Fiber*, kFibers> found;
  std::size_t count = 0;
  const std::size_t most = std::min(kFibers, kGates - count_);
  const bool at_end = scheduler_.fibers().visit_some(place_, kRecords, [&](Fiber& fiber) {
    if (fiber.state.load(relaxed) == FiberState::parked && fiber.stack.load(relaxed) != nullptr) {
      found[count++] = &fiber;
    }
    return count < most;
  });
  // Outside the lock: a record is never unmapped, and what it says is looked at again.
  for (std::size_t i = 0; i < count; ++i) hang(*found[i]);
  return at_end;
}

// Whether there are pages below `context`, which stands in the newest frame.
bool StackTrimmer::is_deep(const Stack& stack, fibers::Context context) const noexcept {
  const auto* address = reinterpret_cast<const char*>(context);
  const char* lowest = stack.lowest;
  if (address <= lowest || address >= reinterpret_cast<const char*>(&stack)) return false;
  const std::uintptr_t end = page_of(address);
  std::array<unsigned char, 256> resident;
  std::size_t pages = 0;
  for (auto from = reinterpret_cast<std::uintptr_t>(lowest); from < end && pages < kDeepPages;) {
    const std::uintptr_t bytes = std::min<std::uintptr_t>(end - from, resident.size() * kPage);
    if (mincore(reinterpret_cast<void*>(from), bytes, resident.data()) != 0) return false;
    for (std::size_t i = 0; i < bytes / kPage; ++i) pages += resident[i] & 1U;
    from += bytes;
  }
  return pages >= kDeepPages;
}

// If the fiber is still parked it keeps what is read here; if not, the gate is found out later.
void StackTrimmer::hang(Fiber& fiber) noexcept {
  Stack* stack = fiber.stack.load(acquire);  // [bound]
  if (stack == nullptr || !scheduler_.stacks().space().has_header_at(stack)) return;
  const std::uint64_t id = stack->fiber_id.load(relaxed);
  fibers::Context context = stack->context.load(relaxed);
  if (context == nullptr || !is_deep(*stack, context)) return;
  if (!make_gates()) {
    refused_ = true;
    return;
  }
  fibers::Gate& gate = memory_->gates[count_];
  gate.lead_to(context, memory_->lobbies[count_].data() + kLobby);
  const bool hangs = stack->context.compare_exchange_strong(context, gate.entrance(),
                                                            detail::release, relaxed);  // [gate]
  if (!hangs) return;
  memory_->hung[count_++] = {&fiber, stack, id, false};
}

// Relaxed: after a barrier on all threads, and whatever changes later goes through the gate.
bool StackTrimmer::is_parked(const Hung& hung) noexcept {
  return hung.stack->fiber_id.load(relaxed) == hung.fiber_id &&
         hung.fiber->stack.load(relaxed) == hung.stack &&
         hung.fiber->state.load(relaxed) == FiberState::parked;
}

// After the barrier, whoever has taken an older context than the gate has said before that the
// fiber runs.
void StackTrimmer::check_all() noexcept {
  if (!base::barrier_all_threads()) refused_ = true;
  for (std::size_t i = 0; i < count_; ++i) {
    memory_->hung[i].parked = !refused_ && is_parked(memory_->hung[i]);
    if (!memory_->hung[i].parked) take_away(i);
  }
  begin_grace();
}

void StackTrimmer::trim(std::size_t position) noexcept {
  const Hung& hung = memory_->hung[position];
  fibers::Gate& gate = memory_->gates[position];
  if (!hung.parked) return;
  scheduler_.fibers().while_locked([&] {
    // Another context: the fiber was about to park when the gate was hung, or somebody has visited
    // its stack.
    if (!is_parked(hung) || hung.stack->context.load(relaxed) != gate.entrance()) return;
    if (!gate.try_close()) return;
    give_back(*hung.stack, fibers::end_of(gate.way_on()));
    gate.open();
    trimmed_.fetch_add(1, relaxed);
  });
  take_away(position);
}

// Nothing to do if the fiber has parked anew, or its stack is another's by now. A fiber that runs
// has no use for a context.
void StackTrimmer::take_away(std::size_t position) noexcept {
  fibers::Gate& gate = memory_->gates[position];
  fibers::Context entrance = gate.entrance();
  // Released, though the context is an older one of the fiber's own: a worker that goes on by that
  // has not been at the gate, and comes after what was done to the stack.
  (void)memory_->hung[position].stack->context.compare_exchange_strong(
      entrance, gate.way_on(), detail::release, relaxed);  // [gate]
}

void StackTrimmer::begin_grace() noexcept {
  switches_.clear();
  for (const auto& worker : scheduler_.workers()) {
    switches_.push_back(worker->counters().switches.get());
  }
}

// Looked at twice, since a barrier interrupts those who run.
bool StackTrimmer::grace_is_over() const noexcept {
  return grace_has_passed() && base::barrier_all_threads() && grace_has_passed();
}

// A worker that was in a switch has counted that one already or is about to: with the second one
// counted after it, the first is over.
bool StackTrimmer::grace_has_passed() const noexcept {
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    const Worker& worker = *scheduler_.workers()[i];
    if (scheduler_.is_asleep(worker)) continue;
    if (worker.counters().switches.get() - switches_[i] < 2) return false;
  }
  return true;
}

}  // namespace weft::scheduler
