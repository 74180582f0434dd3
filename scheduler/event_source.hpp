// The object in which workers sleep until events, usually from the kernel, make fibers runnable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

class Scheduler;

// The scheduler's only interface to the kernel's events. The runtime creates the source first,
// passes it to the scheduler, and destroys it last.
class EventSource {
 public:
  EventSource() = default;
  virtual ~EventSource() = default;
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;

  // A worker calls this function outside of fibers. Blocks until events arrive, interrupt() is
  // called or the deadline passes. Wakes the fibers that waited for the events, and returns their
  // number. May return 0 early. With Deadline::past() it only checks for events, and leaves a
  // pending interrupt to a later wait().
  [[nodiscard]] virtual std::size_t wait(Deadline deadline) noexcept = 0;
  // Ends one blocked wait(), or the next wait() that would block. Any thread may call it.
  virtual void interrupt() noexcept = 0;
  // Returns whether any descriptor is watched. Not virtual, because workers often call it.
  [[nodiscard]] bool watches_anything() const noexcept {
    // Relaxed: announce_watch() notifies a worker that has just read an outdated 0.
    return watched_.load(detail::relaxed) != 0;
  }

  // The scheduler calls this function before its workers start.
  void serve(Scheduler& scheduler) noexcept { scheduler_ = &scheduler; }

 protected:
  // Counts a watch. Returns true for the first watch; in that case, the caller must call
  // announce_watch() once events can arrive.
  [[nodiscard]] bool begin_watch() noexcept {
    return watched_.fetch_add(1, detail::relaxed) == 0;  // Relaxed: see watches_anything().
  }
  void end_watch() noexcept { watched_.fetch_sub(1, detail::relaxed); }
  // Ensures that some worker will soon check for the events. If the caller is a worker, it may
  // perform the check itself, without waking another worker. Has no effect if no scheduler is set.
  // scheduler.cpp implements this function.
  void announce_watch() noexcept;

 private:
  detail::Atomic<std::uint32_t> watched_{0};
  Scheduler* scheduler_ = nullptr;
};

// Returns the event source of the calling fiber's scheduler or, on a plain thread, of the current
// runtime. Throws std::system_error (Errc::no_runtime) if neither exists. scheduler.cpp implements
// this function.
[[nodiscard]] EventSource& current_events();

}  // namespace weft::scheduler
