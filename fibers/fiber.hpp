// The record of a fiber.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>
#include <weft/detail/task.hpp>

#include "fibers/stack.hpp"

namespace weft::fibers {

// Where a fiber is, and who owns it then. Written by the owner, read by dumps, so it may be stale.
enum class FiberState : std::uint8_t {
  free,     // In a store of records.
  ready,    // In one run queue, or about to be put there: the queue owns it. No stack yet if new.
  running,  // On a worker: that worker owns it.
  parked,   // With whoever will wake it.
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
  std::uint8_t size_class = kDefaultSizeClass;
  detail::Task task;
};
static_assert(sizeof(Fiber) == 96, "a million unstarted fibers should cost 96 MB");

}  // namespace weft::fibers
