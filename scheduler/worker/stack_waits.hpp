// Finds stacks for a worker's fibers when the system refuses new stacks.
#pragma once

#include <cstdint>
#include <weft/deadline.hpp>

#include "fibers/fiber_store.hpp"
#include "fibers/stack_pool.hpp"
#include "scheduler/desk.hpp"

namespace weft::scheduler {

class Shared;
class Worker;

// Applies the rules of StackShortage to one worker. ../upkeep/README.md, "Fibers without a stack",
// explains the rules. Owner: the worker.
class StackWaits {
 public:
  // Makes a fiber ready on a stack, which then belongs to the fiber.
  using MakeReady = void (*)(Worker& worker, fibers::Stack& stack, fibers::Fiber& fiber) noexcept;

  StackWaits(Worker& worker, MakeReady make_ready, Shared& shared, Desk& desk,
             fibers::StackPool& stacks, fibers::FiberCache& fibers) noexcept
      : worker_(worker),
        make_ready_(make_ready),
        shared_(shared),
        desk_(desk),
        stacks_(stacks),
        fibers_(fibers) {}

  // Returns the stack on which a new fiber starts, or null if the fiber must wait for a stack. If
  // it returns null, the caller must call put_aside().
  [[nodiscard]] fibers::Stack* take_stack(const fibers::Fiber& fiber) noexcept;
  void put_aside(fibers::Fiber& fiber) noexcept;
  // Must be called if a stack becomes free while fibers wait for stacks.
  void pass_on(fibers::Stack& stack) noexcept;
  // Gives cached stacks to waiting fibers, and requests stacks from the system if a request is due.
  // Must be called on the idle stack.
  void serve() noexcept;
  // Returns the earlier of `limit` and the time at which this worker must next request stacks from
  // the system.
  [[nodiscard]] Deadline prepare_for_sleep(Deadline limit, std::int64_t now) noexcept;

 private:
  void make_ready_on(fibers::Stack& stack, fibers::Fiber& fiber) noexcept {
    make_ready_(worker_, stack, fiber);
  }
  [[nodiscard]] fibers::Fiber* take_next(unsigned size_class) noexcept;
  [[nodiscard]] bool serve_pinned() noexcept;
  [[nodiscard]] bool serve_size(unsigned size_class, bool asks_system) noexcept;

  Worker& worker_;
  const MakeReady make_ready_;
  Shared& shared_;
  Desk& desk_;
  fibers::StackPool& stacks_;
  fibers::FiberCache& fibers_;
};

}  // namespace weft::scheduler
