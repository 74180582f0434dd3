// Waits for events of the kernel, and records which callers wait for which descriptors.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/invariant.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/waist.hpp>
#include <weft/result.hpp>
#include <weft/until.hpp>

#include "base/cache_line.hpp"
#include "io/io_direction.hpp"
#include "scheduler/event_source.hpp"

namespace weft::io {

class Poller;

// A registered descriptor. It stays open while a call uses it, even if it is closed meanwhile, so
// a call never reads from an unrelated file with the same number.
// Records are never freed before their Poller. At worst, a late event finds a record that serves
// another descriptor, which is a false alarm.
// Invariants
//   I1  state_ = kUse * calls in progress + flags; no call begins once kClosing is set.
//   I2  The last call to end after kClosing closes the descriptor, unless it is kBorrowed, and sets
//       kGone.
//   I3  The record returns to the free list once, when kGone is set and kOwned is not.
// Order
//   [use]    leave subtracts (acq_rel) -> the last leave (acq_rel): all calls are over before the
//            descriptor is closed.
//   [owner]  disown clears kOwned (acq_rel), finish_close sets kGone (acq_rel) -> whichever comes
//            second sees all that the first did.
class alignas(base::kCacheLine) IoHandle {
 public:
  // Begins a call that uses the descriptor; returns false once it is closed. Any thread may call
  // it.
  [[nodiscard]] bool enter() noexcept { return begin(0); }
  void leave() noexcept {
    const std::uint32_t before = state_.fetch_sub(kUse, detail::acq_rel);  // [use]
    WEFT_INVARIANT(before >= kUse, "IoHandle I1: a call that ends is counted");
    if (before / kUse == 1 && (before & kClosing) != 0) [[unlikely]]
      finish_close();
  }
  // The result is valid between enter() and leave(), or while no caller closes the handle.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  [[nodiscard]] WaitOutcome wait_readable(Deadline deadline) noexcept {
    return read_.wait(deadline, detail::WaitReason::readable);
  }
  [[nodiscard]] WaitOutcome wait_writable(Deadline deadline) noexcept {
    return write_.wait(deadline, detail::WaitReason::writable);
  }
  [[nodiscard]] IoDirection& read() noexcept { return read_; }
  [[nodiscard]] IoDirection& write() noexcept { return write_; }

  // Wakes all waiting callers with WaitOutcome::closed; the last call to leave closes the
  // descriptor. Returns false if it was closed before. Any thread may call it.
  bool close() noexcept { return end(kClosing); }
  [[nodiscard]] bool is_closed_hint() const noexcept {
    return (state_.load(detail::relaxed) & kClosing) != 0;  // Relaxed: a hint.
  }
  // Returns whether no call is in progress. Relaxed: the caller sees its own calls.
  [[nodiscard]] bool is_unused() const noexcept { return state_.load(detail::relaxed) < kUse; }
  [[nodiscard]] Poller& poller() const noexcept { return *poller_; }

 private:
  friend class Poller;
  static constexpr std::uint32_t kClosing = 1;
  static constexpr std::uint32_t kOwned = 2;
  static constexpr std::uint32_t kGone = 4;
  static constexpr std::uint32_t kBorrowed = 8;     // The poller only deregisters the descriptor.
  static constexpr std::uint32_t kMayBeReady = 16;  // Accepts files that cannot be polled.
  static constexpr std::uint32_t kUse = 32;

  // Counts a call, and sets `flags`; returns false once kClosing is set. Relaxed: the handle was
  // published to the caller together with its descriptor, and [use] orders its end.
  bool begin(std::uint32_t flags) noexcept {
    std::uint32_t state = state_.load(detail::relaxed);
    do {
      if ((state & kClosing) != 0) return false;
    } while (!state_.compare_exchange_weak(state, (state | flags) + kUse, detail::relaxed,
                                           detail::relaxed));
    return true;
  }
  bool end(std::uint32_t flags) noexcept;
  void finish_close() noexcept;
  void disown() noexcept;
  std::size_t deliver(std::uint32_t events, std::uint32_t generation) noexcept;

  // Reading, writing and events need the first six fields, which share one cache line.
  IoDirection read_;
  IoDirection write_;
  detail::Atomic<std::uint32_t> state_{kClosing | kGone};
  // Relaxed everywhere: a stale value can only let a false alarm through.
  detail::Atomic<std::uint32_t> generation_{0};
  int descriptor_ = -1;
  std::uint32_t index_ = 0;
  Poller* poller_ = nullptr;
  // Guarded by the poller's free_lock_. Not annotated, because clang cannot tell that this handle
  // belongs to the poller whose lock is held.
  IoHandle* next_free_ = nullptr;
};

// Keeps a handle's descriptor open for a scope.
class IoUse {
 public:
  explicit IoUse(IoHandle* handle) noexcept
      : handle_(handle != nullptr && handle->enter() ? handle : nullptr) {}
  IoUse(const IoUse&) = delete;
  IoUse& operator=(const IoUse&) = delete;
  ~IoUse() {
    if (handle_ != nullptr) handle_->leave();
  }
  // Returns false if the handle is closed, or there is none.
  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }
  IoHandle* operator->() const noexcept { return handle_; }
  IoHandle& operator*() const noexcept { return *handle_; }

 private:
  IoHandle* handle_;
};

// One epoll instance. Descriptors are registered once, edge-triggered, for both directions.
// Any number of workers may be in wait(); a single worker is enough.
// Invariants
//   I1  While interrupt_pending_ is set the eventfd is readable, or about to be written, or a
//       worker has just read it, will clear the flag, and then looks for work. Not asserted,
//       because the kernel has a part of it.
//   I2  A record is on the free list exactly while no descriptor uses it.
// Order
//   [interrupt]  interrupt exchanges true (acq_rel) -> wait exchanges false (acq_rel) before it
//                returns: what was published before the interrupt is visible to the sleeper.
//   [slab]       add stores a slab's address (release) -> find loads it (acquire): its records.
class Poller : public scheduler::EventSource {
 public:
  // Throws std::system_error if the system refuses the epoll instance or the eventfd.
  Poller();
  // No descriptor may be registered then; a socket that outlives its runtime ends the process.
  ~Poller() override;

  [[nodiscard]] std::size_t wait(Deadline deadline) noexcept override;
  void interrupt() noexcept override;

  // Registers a non-blocking descriptor and adopts it: from now on `handle` closes it. On failure
  // the caller keeps the descriptor. Any thread may call it. Returns Errc::already_watched if the
  // descriptor is already registered with this poller.
  [[nodiscard]] std::error_code add(int descriptor, IoHandle*& handle) noexcept {
    return enter(descriptor, 0, handle);
  }
  // Does the same, and also accepts a descriptor that is always ready, such as a regular file's.
  // add() refuses such a descriptor (std::errc::operation_not_permitted), which gets no events.
  [[nodiscard]] std::error_code add_any(int descriptor, IoHandle*& handle) noexcept {
    return enter(descriptor, IoHandle::kMayBeReady, handle);
  }
  // Does the same as add_any(), but the owner keeps the descriptor, and closes it only after
  // remove().
  [[nodiscard]] std::error_code borrow(int descriptor, IoHandle*& handle) noexcept {
    return enter(descriptor, IoHandle::kMayBeReady | IoHandle::kBorrowed, handle);
  }
  // Closes the handle, and returns its record once no call uses it. Its owner calls it, once.
  void remove(IoHandle& handle) noexcept;
  // Does the same as remove(), but returns the open descriptor to the caller; -1 if it was closed
  // before.
  [[nodiscard]] int detach(IoHandle& handle) noexcept;

 protected:
  // The number of events of one wait(), in a buffer on the waiting worker's own stack.
  static constexpr std::size_t kEvents = 128;
  using Events = std::array<epoll_event, kEvents>;

  // Wakes the callers that wait for the events, and returns how many.
  std::size_t deliver(std::span<const epoll_event> events, bool looks_only) noexcept;
  // Takes the arguments of epoll_ctl(), and returns its results.
  virtual int control(int operation, int descriptor, epoll_event& event) noexcept;

 private:
  friend class IoHandle;
  friend class Ring;  // Counts as a watch while requests are under way.
  static constexpr std::uint32_t kFirstSlabBits = 6;
  static constexpr std::size_t kSlabs = 26;  // Doubling in size: 2^32 records in all.

  std::size_t fetch(Deadline deadline, Events& events) noexcept;
  void clear_interrupt() noexcept;
  [[nodiscard]] IoHandle* find(const epoll_event& event) const noexcept;
  [[nodiscard]] IoHandle* take_record() noexcept;
  [[nodiscard]] bool grow(std::size_t slab) noexcept;
  void give_record(IoHandle& handle) noexcept;
  [[nodiscard]] std::error_code enter(int descriptor, std::uint32_t flags,
                                      IoHandle*& handle) noexcept;
  void deregister(int descriptor) noexcept;

  int epoll_ = -1;
  int interrupt_ = -1;
  detail::Atomic<bool> interrupt_pending_{false};
  // Relaxed: the flag stays set; a thread that does not see it yet only makes one more system call.
  detail::Atomic<bool> milliseconds_only_{false};

  detail::SpinLock free_lock_;
  IoHandle* free_ WEFT_GUARDED_BY(free_lock_) = nullptr;
  std::size_t slab_count_ WEFT_GUARDED_BY(free_lock_) = 0;
  std::array<detail::Atomic<IoHandle*>, kSlabs> slabs_{};
};

// Returns the poller of the calling fiber's runtime, or of the current runtime for a plain thread.
// Throws std::system_error (Errc::no_runtime).
[[nodiscard]] Poller& current_poller();
// Does the same, but returns Errc::no_runtime as a result.
[[nodiscard]] Result<Poller*> find_poller();

}  // namespace weft::io
