// The record of a fiber.
#pragma once

#include <cstdint>
#include <utility>
#include <weft/detail/atomic.hpp>
#include <weft/detail/task.hpp>

#include "fibers/stack.hpp"

namespace weft::fibers {

// The states of a fiber, each with the owner of the fiber. The owner writes the state, and
// dumps read it, so a dump may see a stale state.
enum class FiberState : std::uint8_t {
  free,  // The record is in a store of free records.
  // In one run queue, or about to enter it; the queue owns the fiber. A new fiber has no stack yet.
  ready,
  running,   // Runs on a worker, which owns the fiber.
  parked,    // A waker holds the fiber.
  inlining,  // Waits for another fiber, which runs on its stack.
};

// A small, recycled record that contains the callable. Until a fiber first runs, it uses only
// this record. Records are in slabs that stay mapped while the runtime exists. So a thief may read
// a record through a stale pointer, but must not use the values.
struct Fiber {
  Fiber* next = nullptr;  // The next fiber in a batch, a store or another list.
  // Null until the fiber first runs. Relaxed: only the owner uses it; dumps may read an old value.
  // Order
  //   [bound]  bind stores the stack (release) -> site_hint and dumps load it (acquire): the header
  //            has been constructed, and has the site.
  //   [moved]  bind clears the site after it stores the stack (release) -> site_hint loads the word
  //            (acquire) before the stack: site_hint never returns a time as a site.
  detail::Atomic<Stack*> stack{nullptr};
  detail::Atomic<FiberState> state{FiberState::free};
  // The number of the reason for the wait, plus the flag kCounted (see below). Relaxed: only the
  // owner sets it; the census adds kCounted; dumps may read an old value.
  detail::Atomic<std::uint8_t> wait_reason{0};
  // The size class of the stack, plus the flag kPinned (see below).
  std::uint8_t size_class = kDefaultSizeClass;
  // A digest of task.join_target(), or 0 if that is null. Relaxed: the spawner writes it; for other
  // readers it is a hint.
  detail::Atomic<std::uint8_t> target_digest{0};
  // Until the fiber is bound, holds the place where it was spawned, relative to task.image_hint(),
  // because a whole address has no room; see set_up(). The header of the stack has the site
  // afterwards. From then on, this field is the time since which the fiber has been ready, in half
  // ticks; 0: none. Queues that sort by this time need not read the stacks, which are cold.
  // Relaxed: only the owner uses it; dumps may read an old value.
  detail::Atomic<std::uint32_t> site_or_time{0};
  detail::Task task;

  // A flag in `size_class`: the fiber stays on one worker, Stack::home. Only that worker queues the
  // fiber, so code for queues from which other workers take fibers does not check for kPinned.
  static constexpr std::uint8_t kPinned = 0x80;
  [[nodiscard]] bool is_pinned() const noexcept { return (size_class & kPinned) != 0; }
  [[nodiscard]] unsigned stack_class() const noexcept { return size_class & ~unsigned{kPinned}; }

  // A flag in `wait_reason`: a census has seen the fiber since it parked, and Slab::parked_since
  // has the time. A park stores its reason without this flag.
  static constexpr std::uint8_t kCounted = 0x80;
  [[nodiscard]] std::uint8_t reason() const noexcept {
    return static_cast<std::uint8_t>(wait_reason.load(detail::relaxed) & ~unsigned{kCounted});
  }

  // Prepares a free record. The spawner, which owns the record, calls it. `caller` is the return
  // address of the call to spawn, or null.
  void set_up(detail::Task&& new_task, std::uint8_t new_size_class, const void* caller) noexcept {
    task.refill(std::move(new_task));
    size_class = new_size_class;
    target_digest.store(digest_of(task.join_target()), detail::relaxed);
    const std::intptr_t distance = reinterpret_cast<std::intptr_t>(caller) -
                                   reinterpret_cast<std::intptr_t>(task.image_hint());
    const auto kept = static_cast<std::int32_t>(distance);
    // The distance may be too large for the field, if a shared library wrapped the task and the
    // call is in the program.
    site_or_time.store(kept == distance ? static_cast<std::uint32_t>(kept) : 0, detail::relaxed);
  }
  // Gives the fiber a stack. The worker that runs the fiber for the first time calls it.
  void bind(Stack& header) noexcept {
    header.site.store(static_cast<std::int32_t>(site_or_time.load(detail::relaxed)),
                      detail::relaxed);
    stack.store(&header, detail::release);   // [bound]
    site_or_time.store(0, detail::release);  // [moved]
  }

  // Sets the time, in nanoseconds, since which a bound fiber has been ready: the last time at which
  // a run queue had no room for it, or the end of its sleep. The owner of the fiber calls it: the
  // queue that holds the fiber, or the fiber before its sleep.
  void set_ready_since(std::int64_t nanoseconds) noexcept {
    site_or_time.store(in_half_ticks(nanoseconds), detail::relaxed);
  }
  // Returns the time that set_ready_since() stored, rounded to a tick; it must be within 39 hours
  // of `now`. A fiber that is not bound, or has no time yet, counts as ready since the earliest
  // time.
  [[nodiscard]] std::int64_t ready_since(std::int64_t now) const noexcept {
    const std::uint32_t told = site_or_time.load(detail::relaxed);
    if (told == 0 || stack.load(detail::relaxed) == nullptr) return 0;
    return now - static_cast<std::int32_t>(in_half_ticks(now) - told) / 2 * kTick;
  }
  static constexpr std::int64_t kTick = std::int64_t{1} << 17;  // Nanoseconds.
  // The value is in the middle of a tick, so it is never 0.
  [[nodiscard]] static std::uint32_t in_half_ticks(std::int64_t nanoseconds) noexcept {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(nanoseconds) / (kTick / 2)) | 1;
  }
  [[nodiscard]] static std::uint8_t digest_of(const void* target) noexcept {
    if (target == nullptr) return 0;
    const auto address = reinterpret_cast<std::uintptr_t>(target);
    return static_cast<std::uint8_t>((address >> 4 ^ address >> 11) | 1);
  }
  // Returns the `caller` that set_up() received; null if it is unknown or the fiber ends meanwhile.
  [[nodiscard]] const void* site_hint() const noexcept {
    const std::uint32_t here = site_or_time.load(detail::acquire);  // [moved]
    const Stack* bound = stack.load(detail::acquire);               // [bound]
    const std::int32_t distance =
        bound == nullptr ? static_cast<std::int32_t>(here) : bound->site.load(detail::relaxed);
    if (stack.load(detail::acquire) != bound) return nullptr;  // [bound]
    const char* image = static_cast<const char*>(task.image_hint());
    return distance == 0 || image == nullptr ? nullptr : image + distance;
  }
};
static_assert(sizeof(Fiber) == 64, "a million unstarted fibers should cost 64 MB");

}  // namespace weft::fibers
