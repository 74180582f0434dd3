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
  parked,    // With whoever will wake it.
  inlining,  // Waits for another fiber, which runs on its stack.
};

// All that a spawned fiber is until it first runs: small, recycled, the closure inside.
// Records live in slabs that are never unmapped while the runtime exists, so a stale pointer in a
// queue that is being stolen from can be read, though not used.
struct Fiber {
  Fiber* next = nullptr;  // In a batch, a store or another list.
  // Bound when it first runs, null before. Relaxed: the owner's own; dumps read it, perhaps stale.
  // Order
  //   [bound]  the worker that binds stores (release) -> a dump loads (acquire): the header has
  //            been constructed.
  detail::Atomic<Stack*> stack{nullptr};
  detail::Atomic<FiberState> state{FiberState::free};
  detail::Atomic<std::uint8_t> wait_reason{0};
  // Which size of stack, and kPinned.
  std::uint8_t size_class = kDefaultSizeClass;
  // Of task.join_target(), 0 if that is null. Relaxed: written by the spawner; others take it as a
  // hint.
  detail::Atomic<std::uint8_t> target_digest{0};
  // Relative to task.image_hint(), since a whole address has no room; see set_up().
  // Relaxed: written by the spawner, read by dumps, perhaps stale.
  detail::Atomic<std::int32_t> site{0};
  detail::Task task;

  // In `size_class`: the fiber stays on one worker, Stack::home. Queued there alone, so whoever
  // handles fibers in the queues that others may take from need not ask.
  static constexpr std::uint8_t kPinned = 0x80;
  [[nodiscard]] bool is_pinned() const noexcept { return (size_class & kPinned) != 0; }
  [[nodiscard]] unsigned stack_class() const noexcept { return size_class & ~unsigned{kPinned}; }

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
    site.store(kept == distance ? kept : 0, detail::relaxed);
  }
  [[nodiscard]] static std::uint8_t digest_of(const void* target) noexcept {
    if (target == nullptr) return 0;
    const auto address = reinterpret_cast<std::uintptr_t>(target);
    return static_cast<std::uint8_t>((address >> 4 ^ address >> 11) | 1);
  }
  // The `caller` that set_up() was given; null when unknown.
  [[nodiscard]] const void* site_hint() const noexcept {
    const std::int32_t distance = site.load(detail::relaxed);
    const char* image = static_cast<const char*>(task.image_hint());
    return distance == 0 || image == nullptr ? nullptr : image + distance;
  }
};
static_assert(sizeof(Fiber) == 64, "a million unstarted fibers should cost 64 MB");

}  // namespace weft::fibers
