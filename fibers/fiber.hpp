// The record of a fiber.
#pragma once

#include <cstdint>
#include <utility>
#include <weft/detail/atomic.hpp>
#include <weft/detail/task.hpp>

#include "fibers/stack.hpp"

namespace weft::fibers {

// Where a fiber is, and who owns it then. Written by the owner, read by dumps, so it may be stale.
enum class FiberState : std::uint8_t {
  free,      // In a store of records.
  ready,     // In one run queue, or about to be put there: the queue owns it. No stack yet if new.
  running,   // On a worker: that worker owns it.
  parked,    // A waker holds the fiber.
  inlining,  // Waits for another fiber, which runs on its stack.
};

// All that a spawned fiber is until it first runs: small, recycled, the closure inside.
// Records live in slabs that are never unmapped while the runtime exists, so a stale pointer in a
// queue that is being stolen from can be read, though not used.
struct Fiber {
  Fiber* next = nullptr;  // In a batch, a store or another list.
  // Bound when it first runs, null before. Relaxed: the owner's own; dumps read it, perhaps stale.
  // Order
  //   [bound]  bind stores the stack (release) -> site_hint and dumps load it (acquire): the header
  //            has been constructed, and has the site.
  //   [moved]  bind takes the site away after storing the stack (release) -> site_hint loads the
  //            word (acquire) before the stack: a time is not taken for a site.
  detail::Atomic<Stack*> stack{nullptr};
  detail::Atomic<FiberState> state{FiberState::free};
  // Why the fiber waits, as a number, and kCounted. Relaxed: the owner's own; the census adds
  // kCounted; dumps read it, perhaps stale.
  detail::Atomic<std::uint8_t> wait_reason{0};
  // Which size of stack, and kPinned.
  std::uint8_t size_class = kDefaultSizeClass;
  // Of task.join_target(), 0 if that is null. Relaxed: written by the spawner; others take it as a
  // hint.
  detail::Atomic<std::uint8_t> target_digest{0};
  // Before the fiber is bound, where it was spawned, relative to task.image_hint(), since a whole
  // address has no room; see set_up(). Afterwards the header of its stack has that, and here stands
  // since when the fiber is ready, in half ticks, or 0 if it has not been set yet: queues that are
  // sorted by it need not look at stacks, which are cold. Relaxed: the owner's own; dumps read it,
  // perhaps stale.
  detail::Atomic<std::uint32_t> site_or_time{0};
  detail::Task task;

  // In `size_class`: the fiber stays on one worker, Stack::home. It is queued there alone, so code
  // for queues that other workers take from need not check.
  static constexpr std::uint8_t kPinned = 0x80;
  [[nodiscard]] bool is_pinned() const noexcept { return (size_class & kPinned) != 0; }
  [[nodiscard]] unsigned stack_class() const noexcept { return size_class & ~unsigned{kPinned}; }

  // In `wait_reason`: a census has seen the fiber since it has parked, and Slab::parked_since has
  // the time. A park stores a reason without it.
  static constexpr std::uint8_t kCounted = 0x80;
  [[nodiscard]] std::uint8_t reason() const noexcept {
    return static_cast<std::uint8_t>(wait_reason.load(detail::relaxed) & ~unsigned{kCounted});
  }

  // By its spawner, whose own the free record is. `caller` is where the call of spawn returns to,
  // or null.
  void set_up(detail::Task&& new_task, std::uint8_t new_size_class, const void* caller) noexcept {
    task.refill(std::move(new_task));
    size_class = new_size_class;
    target_digest.store(digest_of(task.join_target()), detail::relaxed);
    const std::intptr_t distance = reinterpret_cast<std::intptr_t>(caller) -
                                   reinterpret_cast<std::intptr_t>(task.image_hint());
    const auto kept = static_cast<std::int32_t>(distance);
    // Too far where the task was wrapped by a shared library, and the call is in the program.
    site_or_time.store(kept == distance ? static_cast<std::uint32_t>(kept) : 0, detail::relaxed);
  }
  // By the worker that runs it for the first time.
  void bind(Stack& header) noexcept {
    header.site.store(static_cast<std::int32_t>(site_or_time.load(detail::relaxed)),
                      detail::relaxed);
    stack.store(&header, detail::release);   // [bound]
    site_or_time.store(0, detail::release);  // [moved]
  }

  // Of one that is bound, in nanoseconds: when it became ready, the last time that a run queue had
  // no room for it or that it slept; of one that sleeps, when it will. By its owner: the queue that
  // it is in, or the sleeper.
  void set_ready_since(std::int64_t nanoseconds) noexcept {
    site_or_time.store(in_half_ticks(nanoseconds), detail::relaxed);
  }
  // That time, to a tick, which is within 39 hours of `now`. A fiber that is not bound, or has no
  // time yet, counts as ready since ever.
  [[nodiscard]] std::int64_t ready_since(std::int64_t now) const noexcept {
    const std::uint32_t told = site_or_time.load(detail::relaxed);
    if (told == 0 || stack.load(detail::relaxed) == nullptr) return 0;
    return now - static_cast<std::int32_t>(in_half_ticks(now) - told) / 2 * kTick;
  }
  static constexpr std::int64_t kTick = std::int64_t{1} << 17;  // Nanoseconds.
  // In the middle of a tick, so it is never 0.
  [[nodiscard]] static std::uint32_t in_half_ticks(std::int64_t nanoseconds) noexcept {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(nanoseconds) / (kTick / 2)) | 1;
  }
  [[nodiscard]] static std::uint8_t digest_of(const void* target) noexcept {
    if (target == nullptr) return 0;
    const auto address = reinterpret_cast<std::uintptr_t>(target);
    return static_cast<std::uint8_t>((address >> 4 ^ address >> 11) | 1);
  }
  // The `caller` that set_up() was given; null when unknown, or when the fiber ends meanwhile.
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
