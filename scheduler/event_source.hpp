// Where workers sleep when something besides them may make fibers runnable: the kernel, as a rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

class Scheduler;

// The scheduler sees no more of the kernel than this. The runtime creates the source first, hands
// it down, and destroys it last.
class EventSource {
 public:
  EventSource() = default;
  virtual ~EventSource() = default;
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;

  // A worker calls it, outside of fibers. Blocks until events come, interrupt() is called or the
  // deadline passes, makes the fibers that waited for the events runnable, and returns how many it
  // woke. It may return 0 early. With Deadline::past() it only looks, and leaves a pending
  // interrupt to sleepers.
  [[nodiscard]] virtual std::size_t wait(Deadline deadline) noexcept = 0;
  // Makes one wait() that blocks, or the next one that would, return. Any thread may call it.
  virtual void interrupt() noexcept = 0;
  // Whether anything is watched. Not virtual: workers call it all the time.
  [[nodiscard]] bool watches_anything() const noexcept {
    // Relaxed: a hint; announce_watch() reaches a worker that saw 0 just before.
    return watched_.load(detail::relaxed) != 0;
  }

  // The scheduler calls it before its workers start.
  void serve(Scheduler& scheduler) noexcept { scheduler_ = &scheduler; }

 protected:
  // Counts what is watched. True for the first: announce_watch() must follow once events can come.
  [[nodiscard]] bool begin_watch() noexcept {
    return watched_.fetch_add(1, detail::relaxed) == 0;  // Relaxed: see watches_anything().
  }
  void end_watch() noexcept { watched_.fetch_sub(1, detail::relaxed); }
  // Has a worker that sleeps elsewhere come and sleep in wait(). Does nothing without a scheduler.
  // Defined by the scheduler.
  void announce_watch() noexcept;

 private:
  detail::Atomic<std::uint32_t> watched_{0};
  Scheduler* scheduler_ = nullptr;
};

// The event source of the calling fiber's scheduler, or of the current runtime for a plain thread.
// Throws std::system_error (Errc::no_runtime). Defined by the scheduler.
[[nodiscard]] EventSource& current_events();

}  // namespace weft::scheduler
