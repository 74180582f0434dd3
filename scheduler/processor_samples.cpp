#include "scheduler/processor_samples.hpp"

#include <signal.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "base/refusal.hpp"
#include "base/signal_handlers.hpp"
#include "fibers/calls/call_walk.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::scheduler {

using detail::acquire;
using detail::relaxed;
using detail::release;

namespace {

enum class SlotState : std::uint8_t { free, filling, full };

// A slot into which the signal handler writes one sample.
// Order
//   [slot]  on_sample() stores full (release) -> drain() loads it (acquire): drain() reads a
//           complete sample. drain() stores free (release) -> take_slot() reads free (acquire):
//           drain() has read the old sample before a new one overwrites it.
struct SampleSlot {
  detail::Atomic<SlotState> state{SlotState::free};
  ProcessorSample sample;
  fibers::ThreadImage image;
};

constexpr std::size_t kSlots = 128;

// The process has one such table. Its slots are never freed, because a signal may arrive after the
// sampler has been destroyed. The stack copy in a slot uses no memory until a sample fills it.
// Order
//   [slots]  the constructor stores `slots` (release) -> take_slot() loads it (acquire):
//            take_slot() then sees constructed slots.
struct SampleBook {
  detail::Atomic<SampleSlot*> slots{nullptr};
  detail::Atomic<bool> is_open{false};    // Relaxed: a sample taken too late is discarded.
  detail::Atomic<std::uint32_t> next{0};  // Relaxed: a search may begin at any index.
  detail::Atomic<std::uint64_t> lost{0};  // Relaxed: a count.
};
SampleBook samples;

SampleSlot* take_slot() noexcept {
  constexpr unsigned kTries = 8;
  SampleSlot* const slots = samples.slots.load(acquire);  // [slots]
  if (slots == nullptr) return nullptr;
  for (unsigned i = 0; i < kTries; ++i) {
    SampleSlot& slot = slots[samples.next.fetch_add(1, relaxed) % kSlots];
    SlotState state = SlotState::free;
    if (slot.state.compare_exchange_strong(state, SlotState::filling, acquire,
                                           relaxed)) {  // [slot]
      return &slot;
    }
  }
  samples.lost.fetch_add(1, relaxed);
  return nullptr;
}

// Records the fiber that is running on this thread. Records no fiber during a switch, because the
// stack pointer is then outside the new fiber's stack.
void note_fiber(ProcessorSample& sample, fibers::ThreadImage& image) noexcept {
  Worker* const worker = current_worker();
  const fibers::Fiber* const fiber = worker == nullptr ? nullptr : worker->current_fiber();
  const fibers::Stack* const stack = fiber == nullptr ? nullptr : fiber->stack.load(relaxed);
  if (stack == nullptr) return;
  const std::uintptr_t pointer = image.registers.values[fibers::kStackRegister];
  if (pointer < reinterpret_cast<std::uintptr_t>(stack->lowest) ||
      pointer >= reinterpret_cast<std::uintptr_t>(stack)) {
    return;
  }
  sample.is_fiber = true;
  sample.name = stack->name.copy();
  sample.type = fiber->task.type_hint();
  // The copy ends at the fiber's Stack header. If the fiber runs on its parent's stack, the
  // parent's frames are above this header, so the copy omits them.
  image.copy_stack(reinterpret_cast<const char*>(stack));
}

void on_sample(int /*number*/, siginfo_t* info, void* context) {
  if (info->si_code != SI_TIMER || !samples.is_open.load(relaxed)) return;
  const int saved_errno = errno;
  if (SampleSlot* const slot = take_slot()) {
    ProcessorSample& sample = slot->sample;
    sample.count = 1 + static_cast<std::uint64_t>(info->si_overrun);
    sample.is_fiber = false;
    sample.name = {};
    sample.type = nullptr;
    slot->image.begin = 0;
    slot->image.count = 0;
    slot->image.registers.read(context);
    note_fiber(sample, slot->image);
    slot->state.store(SlotState::full, release);  // [slot]
  }
  errno = saved_errno;
}

}  // namespace

bool ProcessorSampler::prepare() noexcept {
  return base::install_own_signal_handler(SIGPROF, &on_sample);
}

ProcessorSampler::ProcessorSampler(std::chrono::nanoseconds period) : period_(period) {
  if (samples.slots.load(relaxed) == nullptr) {
    samples.slots.store(new SampleSlot[kSlots], release);  // [slots]
  }
  drain([](const ProcessorSample&) {});  // Discards late samples of an earlier sampler.
  samples.lost.store(0, relaxed);
  follow_workers();
  samples.is_open.store(true, relaxed);
}

ProcessorSampler::~ProcessorSampler() { samples.is_open.store(false, relaxed); }

void ProcessorSampler::follow_workers() {
  bool is_refused = false;
  (void)visit_registry(Deadline::never(), [this, &is_refused](Scheduler& scheduler) {
    if (scheduler.lost_in_fork()) return;
    for (const Desk* const desk : scheduler.shared().desks()) {
      const int thread = desk->thread.number();
      if (thread == 0) continue;  // The thread has not started yet.
      const auto [timer, is_new] = timers_.try_emplace(
          thread, base::ThreadTimer::Setting{
                      .thread = thread, .signal = SIGPROF, .first = period_, .period = period_});
      // Creating a timer also fails if the thread has just ended, so one failure is not an error.
      if (!is_new || timer->second.is_set()) continue;
      is_refused = true;
      timers_.erase(timer);
    }
  });
  if (is_refused && timers_.empty()) {
    throw base::refusal(std::make_error_code(std::errc::resource_unavailable_try_again),
                        "a profile cannot create timers for its workers' processor time");
  }
}

void ProcessorSampler::drain(const std::function<void(const ProcessorSample&)>& see) {
  SampleSlot* const slots = samples.slots.load(relaxed);
  for (std::size_t i = 0; i < kSlots; ++i) {
    SampleSlot& slot = slots[i];
    if (slot.state.load(acquire) != SlotState::full) continue;  // [slot]
    slot.sample.calls = fibers::calls_in(slot.image);
    see(slot.sample);
    slot.state.store(SlotState::free, release);  // [slot]
  }
}

std::uint64_t ProcessorSampler::lost() noexcept { return samples.lost.load(relaxed); }

}  // namespace weft::scheduler
