// The interface for simulations, in which the scheduler has one worker, and code outside the
// scheduler makes every decision.
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

// Makes the decisions. The worker of the Stage makes all calls, one at a time; any thread may call
// woken_from_outside(). A simulation knows each fiber by its address and must not access the fiber.
// After the fiber has ended, a later fiber may have the same address.
class Simulation {
 public:
  Simulation() noexcept;
  virtual ~Simulation() = default;
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // The running fiber has spawned a fiber; if no fiber is running, the spawn came from outside.
  virtual void spawned(fibers::Fiber& fiber) noexcept = 0;
  // A fiber has become ready. A later take() may return this fiber.
  virtual void ready(fibers::Fiber& fiber) noexcept = 0;
  // Returns the fiber to run next, and sets `ends_turn` if that fiber must yield at its next call
  // that may park. Returns null if no fiber is ready.
  [[nodiscard]] virtual fibers::Fiber* take(bool& ends_turn) noexcept = 0;
  // A thread outside the simulation is making the fiber ready; the worker calls ready() later.
  virtual void woken_from_outside(fibers::Fiber& fiber) noexcept = 0;
  // The running fiber has ended.
  virtual void ended(fibers::Fiber& fiber) noexcept = 0;
  // An exception has left the running fiber, which has not ended yet.
  virtual void failed(std::exception_ptr failure) noexcept = 0;
  // The process is about to abort because of misuse. Writes the state of the simulation to stderr.
  virtual void panicked() noexcept = 0;
  // Returns 64 bits that depend only on the seed and on the previous calls.
  [[nodiscard]] virtual std::uint64_t random() noexcept = 0;

  // Returns the time on the monotonic clock of the running fiber's host, in nanoseconds.
  [[nodiscard]] virtual std::int64_t host_now() const noexcept = 0;
  // Returns the value of now() at the moment when host_now() reaches `host_time`.
  [[nodiscard]] virtual std::int64_t machine_time(std::int64_t host_time) const noexcept = 0;
  // Returns nanoseconds since 1970 on the wall clock of the running fiber's host.
  [[nodiscard]] virtual std::int64_t wall_clock() const noexcept = 0;

  // Returns the number of the running fiber's process; see simulated_process().
  [[nodiscard]] std::uint64_t process() const noexcept {
    return std::uint64_t{number_} << 32 | process_;
  }

  // Returns the time in nanoseconds on the simulation's own monotonic clock, which drives the
  // timers.
  [[nodiscard]] std::int64_t now() const noexcept { return now_; }

  // The monotonic clock's time when a simulation begins. It is large so that times stay positive
  // when programs subtract durations from them.
  static constexpr std::int64_t kBeginning = 1'000'000'000'000'000;
  // The wall clock's time when a simulation begins: 2030-01-01 00:00:00 UTC.
  static constexpr std::int64_t kWallClock = 1'893'456'000'000'000'000;

 protected:
  std::int64_t now_ = kBeginning;
  std::uint32_t process_ = 0;  // The number of the running fiber's process in this simulation.

 private:
  const std::uint32_t number_;
};

// Runs the fibers of a simulation on one worker. A process has at most one Stage at a time. No
// other thread runs or watches the Stage's fibers, and by default plain threads do not spawn into
// it. The plain thread that made the Stage calls the functions, except where stated.
class Stage {
 public:
  // Starts the worker. `events` outlives it. Throws std::bad_alloc, std::system_error.
  Stage(Simulation& simulation, scheduler::EventSource& events, std::size_t stack_size);
  // Ends the worker, which must have nothing to run: Simulation::take() must return null. Fibers
  // that have not ended are abandoned, and the objects on their stacks are not destroyed.
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Spawns the first fiber.
  void spawn(Task&& task);
  // Returns the time at which the earliest timer is due, or a slightly earlier time; never() if
  // there is no timer. The worker calls it.
  [[nodiscard]] Deadline next_timer() const noexcept;
  // Returns a heading and, for each fiber, a line that describes it and its call stack. The worker
  // calls it, outside of fibers; the runtime implements it.
  [[nodiscard]] std::string describe() const;
  // Returns the line that describes `fiber`. The worker calls it, outside of fibers; the runtime
  // implements it.
  [[nodiscard]] std::string describe(const fibers::Fiber& fiber) const;
  // Returns the line that describes the running fiber and its call stack, or an empty string if no
  // fiber runs. The runtime implements this function; the thread that made the Stage calls it.
  [[nodiscard]] std::string describe_running() const;
  // In a build with -Dno_sync=true, the latest switch of each fiber synchronizes with this call.
  // Any thread or fiber may call it.
  static void learn_of_all_fibers() noexcept;

 private:
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  void (*former_hook_)() noexcept = nullptr;  // The destructor restores this hook.
};

}  // namespace weft::detail
