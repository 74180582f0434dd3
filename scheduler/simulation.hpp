// The door for simulations: a scheduler with one worker, whose every decision is made elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <weft/deadline.hpp>
#include <weft/detail/simulated.hpp>
#include <weft/detail/task.hpp>

#include "scheduler/event_source.hpp"

namespace weft::fibers {
struct Fiber;
}

namespace weft::detail {

// Makes the decisions. The worker of the Stage makes all calls, and never two at once. A fiber is
// no more than an address here, which a later fiber may have again after the end of the first.
class Simulation {
 public:
  Simulation() = default;
  virtual ~Simulation() = default;
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // A fiber has been spawned by the one that runs, or from outside if none runs.
  virtual void spawned(fibers::Fiber& fiber) noexcept = 0;
  // A fiber has become ready; take() gives it back sooner or later, or never.
  virtual void ready(fibers::Fiber& fiber) noexcept = 0;
  // The fiber that runs next, which leaves `ends_turn` true if it is to give way in its next call
  // that may park. Null: none is ready.
  [[nodiscard]] virtual fibers::Fiber* take(bool& ends_turn) noexcept = 0;
  // The running fiber has ended.
  virtual void ended(fibers::Fiber& fiber) noexcept = 0;
  // An exception has left a fiber, which is still the running one.
  virtual void failed(std::exception_ptr failure) noexcept = 0;
  // The process is about to end by a sentence about misuse. Writes to stderr what was simulated.
  virtual void panicked() noexcept = 0;
  // 64 bits that depend on the seed and on the calls before alone.
  [[nodiscard]] virtual std::uint64_t random() noexcept = 0;

  // Nanoseconds of the monotonic clock of the running fiber's host.
  [[nodiscard]] virtual std::int64_t host_now() const noexcept = 0;
  // When a time of that clock comes, by now().
  [[nodiscard]] virtual std::int64_t machine_time(std::int64_t host_time) const noexcept = 0;
  // Nanoseconds since 1970, by that host.
  [[nodiscard]] virtual std::int64_t wall_clock() const noexcept = 0;

  // Nanoseconds of the simulation's own monotonic clock, which has the timers. They only grow.
  [[nodiscard]] std::int64_t now() const noexcept { return now_; }

 protected:
  // The monotonic clock's time at the beginning of every simulation; large, because programs
  // subtract from it.
  static constexpr std::int64_t kBeginning = 1'000'000'000'000'000;
  // 2030-01-01 00:00:00 UTC.
  static constexpr std::int64_t kWallClock = 1'893'456'000'000'000'000;

  std::int64_t now_ = kBeginning;
};

// A process has one at a time. No other thread runs or watches fibers, and plain threads do not
// spawn to it by themselves. The plain thread that made it calls, unless a function says otherwise.
class Stage {
 public:
  // Starts the worker. `events` outlives it. Throws std::system_error.
  Stage(Simulation& simulation, scheduler::EventSource& events, std::size_t stack_size);
  // Ends the worker, which must have nothing to run: Simulation::take() gives it nothing more.
  // Fibers that have not ended are given up: what they hold is not destroyed.
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Spawns the first fiber.
  void spawn(Task&& task);
  // When the earliest timer is due, or a little before; never() without one. The worker calls it.
  [[nodiscard]] Deadline next_timer() const noexcept;
  // Returns a heading, and a line for each fiber with its calls. The worker calls it, outside of
  // fibers. The runtime defines it.
  [[nodiscard]] std::string describe() const;

 private:
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  void (*former_hook_)() noexcept = nullptr;  // The former panic hook.
};

}  // namespace weft::detail
