// Records what happens to the fibers of one worker.
#pragma once

#include <cstdint>
#include <string_view>
#include <weft/detail/atomic.hpp>
#include <weft/detail/trace_event.hpp>
#include <weft/detail/waist.hpp>

#include "base/probes.hpp"
#include "scheduler/record/counters.hpp"
#include "scheduler/record/fiber_states.hpp"
#include "scheduler/record/sampler.hpp"
#include "scheduler/record/trace_book.hpp"
#include "scheduler/record/wait_samples.hpp"

namespace weft::detail {
class Simulation;
}

namespace weft::scheduler {

// A worker calls one of these functions for each transition of a fiber. It stores the new state,
// and notifies the counters, the probes, the sampler, the trace, a recording of waits and the
// simulation. While the sampler, the trace, the recording and the simulation are inactive, they add
// only one branch to each switch. Owner: the worker's thread, except for const functions.
class Recorder {
 public:
  // How the running fiber stops running.
  enum class Departure : std::uint8_t { ended, left, inlines };

  // `simulation` is null outside of simulations.
  Recorder(unsigned runtime, unsigned worker, detail::Simulation* simulation) noexcept
      : runtime_(runtime), worker_(worker), simulation_(simulation) {
    choose_watches();
  }

  // The fiber that this worker runs; null on the idle stack. Another thread may see a stale value.
  [[nodiscard]] fibers::Fiber* running() const noexcept { return running_.load(detail::relaxed); }

  // Called when this worker has spawned a fiber. `caller` is the return address of the spawn()
  // call.
  void spawned(fibers::Fiber& fiber, [[maybe_unused]] const void* caller) noexcept {
    become_ready(fiber);
    WEFT_PROBE(spawn, &fiber, caller);
    if (watches_ready_) [[unlikely]]
      note_spawn(fiber);
  }
  void spawned_parked(fibers::Fiber& fiber, detail::WaitReason reason) noexcept {
    if (watches_ready_) [[unlikely]]
      note_spawn_parked(fiber);
    become_parked(fiber, reason);
  }
  void ready(fibers::Fiber& fiber) noexcept {
    become_ready(fiber);
    WEFT_PROBE(wake, &fiber, worker_);
    if (watches_ready_) [[unlikely]]
      note_ready(fiber);
  }
  // Called when the running fiber is about to park. Static, because a compiler could otherwise use
  // this recorder's address after the park, on another worker.
  static void parks(fibers::Fiber& fiber, detail::WaitReason reason) noexcept {
    WEFT_PROBE(park, &fiber, static_cast<int>(reason));
    become_parked(fiber, reason);
  }
  // Called when `next` begins to run.
  void runs(Departure how, fibers::Fiber& next) noexcept {
    counters_.switches.add_one();
    change_to(how, next);
  }
  // Called when the idle stack begins to run.
  void idles(Departure how) noexcept {
    counters_.switches.add_one();
    if (watches_switches_) [[unlikely]]
      here()->note_switch(how, nullptr);
    running_.store(nullptr, detail::relaxed);
  }
  // Called when a fiber runs again, because its inlined child has ended. Does not count as a
  // switch, because the start of the child has been counted as one.
  void resumes(fibers::Fiber& parent) noexcept { change_to(Departure::ended, parent); }
  void stolen_from(Recorder& victim) noexcept;

  // Called before and after the worker's thread sleeps or rests (see Loop::rest()).
  void sleeps(std::int64_t now) noexcept;
  void wakes(std::int64_t now) noexcept;
  [[nodiscard]] std::int64_t asleep_since() const noexcept {
    return parked_since_.load(detail::relaxed);
  }
  void begins_life(std::int64_t now) noexcept { born_.store(now, detail::relaxed); }

  [[nodiscard]] WorkerCounters& counters() noexcept { return counters_; }
  [[nodiscard]] const WorkerCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] const Sampler& sampler() const noexcept { return sampler_; }
  // The time for which the worker's thread has existed, and the time for which the thread was
  // asleep or at rest.
  struct Times {
    std::int64_t life = 0;
    std::int64_t parked = 0;
  };
  // Any thread may call it.
  [[nodiscard]] Times times(std::int64_t now) const noexcept;

  // Returns whether begin() has work to do. The worker calls is_due() after reading the clock.
  [[nodiscard]] bool is_due(std::int64_t now) const noexcept {
    return sampler_.is_due(now) || detail::is_tracing() != trace_.is_on() || waits_.is_stale();
  }
  void begin(std::int64_t now) noexcept;
  // Called by the running fiber when a trace has begun or ended.
  void look_at_trace() noexcept;
  void note(detail::TraceKind kind, std::uint64_t number = 0) noexcept {
    if (trace_.is_on()) trace_.put(kind, number);
  }
  void note_text(detail::TraceKind kind, std::string_view text) noexcept;

 private:
  void change_to(Departure how, fibers::Fiber& next) noexcept {
    if (watches_switches_) [[unlikely]]
      here()->note_switch(how, &next);
    WEFT_PROBE(run, &next, worker_);
    running_.store(&next, detail::relaxed);
    become_running(next);
  }
  // Returns `this`, computed anew at each call. Otherwise, a compiler would keep the address in a
  // register across switches. Saving this register would enlarge the frame of each parked fiber by
  // 16 bytes.
  [[nodiscard, gnu::always_inline]] Recorder* here() noexcept {
#if defined(__x86_64__)
    Recorder* address;
    asm("leaq %1, %0" : "=r"(address) : "m"(*this));
    return address;
#else
    return this;
#endif
  }
  void choose_watches() noexcept;
  // Not gnu::cold, because code that is optimized for size would take 1.5 times as long per event.
  [[gnu::noinline]] void note_spawn(fibers::Fiber& fiber) noexcept;
  [[gnu::noinline]] void note_spawn_parked(fibers::Fiber& fiber) noexcept;
  [[gnu::noinline]] void note_ready(const fibers::Fiber& fiber) noexcept;
  [[gnu::noinline]] void note_switch(Departure how, const fibers::Fiber* next) noexcept;
  // `caller` is the return address of note_switch().
  void note_waits(Departure how, const fibers::Fiber* next, const void* caller) noexcept;

  const unsigned runtime_;
  const unsigned worker_;
  // Must not be the first field, which is located at the recorder's address. A compiler would keep
  // this address in a register, although a switch may move the fiber to another worker.
  detail::Atomic<fibers::Fiber*> running_{nullptr};
  detail::Simulation* const simulation_;
  // Whether the sampler, the trace or the simulation must be notified of fibers that become ready.
  bool watches_ready_ = false;
  // Whether the sampler, the trace, the simulation or a recording of waits must be notified of
  // fibers that run.
  bool watches_switches_ = false;
  WorkerCounters counters_;
  // When the thread started, in nanoseconds; 0 before that. Relaxed: it is a statistic.
  detail::Atomic<std::int64_t> born_{0};
  // The time in nanoseconds at which the worker fell asleep or began to rest; 0 while it is awake.
  detail::Atomic<std::int64_t> parked_since_{0};
  Sampler sampler_;
  TraceWriter trace_;
  WaitSampler waits_;
};

}  // namespace weft::scheduler
