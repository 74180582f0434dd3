// The core of a simulated world.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/waist.hpp>
#include <weft/sim.hpp>

#include "libs/sim/chance.hpp"
#include "libs/sim/decisions.hpp"
#include "libs/sim/disturbances.hpp"
#include "libs/sim/events.hpp"
#include "libs/sim/plan.hpp"
#include "libs/sim/run_state.hpp"
#include "libs/sim/schedule.hpp"
#include "libs/sim/turn_watch.hpp"
#include "scheduler/simulation.hpp"

namespace weft::sim {

class CallFaultsKernel;
class Disks;
class Wires;

// Makes all decisions of a world, whose Stage calls this class through the Simulation interface.
// Only the stage's worker uses it, unless a comment names another user. The plain thread that made
// the core waits in run() until the body returns or the run fails. After that, no fiber runs.
class Core final : public detail::Simulation, private Timekeeper {
 public:
  Core(const Options& options, std::uint64_t seed, const Plan& plan, Schedule& schedule);
  ~Core() override;

  // --- For the plain thread that made the core ---

  [[nodiscard]] DecisionLog& decisions() noexcept { return decisions_; }
  // Runs `body` until it returns or the run fails. Throws std::system_error.
  void run(const std::function<void(World&)>& body);
  [[nodiscard]] std::uint64_t turns() const noexcept { return watch_.turns(); }

  // --- Simulation ---

  void spawned(fibers::Fiber& fiber) noexcept override;
  void ready(fibers::Fiber& fiber) noexcept override;
  [[nodiscard]] fibers::Fiber* take(bool& ends_turn) noexcept override;
  void woken_from_outside(fibers::Fiber& fiber) noexcept override;
  void ended(fibers::Fiber& fiber) noexcept override;
  void failed(std::exception_ptr failure) noexcept override;
  void panicked() noexcept override;
  [[nodiscard]] std::uint64_t random() noexcept override;
  [[nodiscard]] std::int64_t host_now() const noexcept override { return state_.host_now(); }
  [[nodiscard]] std::int64_t machine_time(std::int64_t host_time) const noexcept override {
    return state_.machine_time(host_time);
  }
  [[nodiscard]] std::int64_t wall_clock() const noexcept override { return state_.wall_clock(); }

  // --- Its parts ---

  [[nodiscard]] RunState& state() noexcept { return state_; }
  [[nodiscard]] Wires& wires() noexcept { return *wires_; }
  [[nodiscard]] Disks& disks() noexcept { return *disks_; }
  [[nodiscard]] Events& events() noexcept { return *events_; }
  [[nodiscard]] Disturbances& disturbances() noexcept { return disturbances_; }

  // --- For fibers of the world ---

  void start(std::uint32_t number);
  // Ends all fibers of the host. If the caller is one of them, it must then call leave_for_ever().
  void end_host(std::uint32_t number, bool has_power);
  void stop(std::uint32_t number);
  void go_on(std::uint32_t number);
  // Parks the caller, which never runs again.
  [[noreturn]] static void leave_for_ever() noexcept;
  void settle();
  // Waits until all fibers of the host have ended. For the world, it does not wait for the caller.
  // Fails the run if fibers still exist after Options::grace, or if descriptors are still open.
  void demand_end(std::uint32_t number);
  // Throws std::invalid_argument, std::logic_error.
  void fail_calls(std::uint32_t number, const CallFaults& faults);
  // Spawns a fiber that does not count as a leak of any host.
  void spawn_helper(std::function<void()> action);

  // Returns the core of the calling fiber's world. Throws std::logic_error outside of a world.
  [[nodiscard]] static Core& here();
  // Does the same, but returns null outside of a world.
  [[nodiscard]] static Core* find() noexcept;

 private:
  [[nodiscard]] bool is_dead(const Actor& actor) const noexcept {
    return actor.life != state_.host(actor.host).life;
  }
  [[nodiscard]] Deadline next_timer() const noexcept override;
  std::size_t pass_time(Deadline next) noexcept override;
  void refuse_wake(const fibers::Fiber& fiber) noexcept;
  void wait_for_end();
  void run_body(const std::function<void(World&)>& body);
  void decide(Decision decision) noexcept;
  // Returns the index in ready_ of the fiber that runs next; kNone if computing fibers occupy all
  // workers.
  [[nodiscard]] std::size_t choose() noexcept;
  [[nodiscard]] std::size_t choose_on_workers();
  [[nodiscard]] bool allocation_fails() noexcept;

  const Options& options_;
  Schedule& schedule_;
  RunState state_;
  Chance random_;
  Disturbances disturbances_;
  std::unordered_map<fibers::Fiber*, Actor> actors_;
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<Candidate> ready_;
  std::vector<Candidate> runnable_;   // The fibers of ready_ that have or can get a worker.
  bool ended_turn_ = false;           // Whether the fiber that ran last had to give way.
  std::size_t resumable_ = kNone;     // The index in ready_ of the fiber that ran last.
  fibers::Fiber* running_ = nullptr;  // The fiber that runs, or that ran last.
  bool current_is_helper_ = false;
  std::optional<std::uint32_t> spawn_host_;  // Set while a fiber is spawned for another host.
  bool spawns_helper_ = false;
  std::uint64_t spawns_ = 0;
  TurnWatch watch_;
  detail::Waker settler_{};
  DecisionLog decisions_;
  // Relaxed: the queue through which the fiber arrives publishes the fiber.
  detail::Atomic<fibers::Fiber*> woken_from_outside_{nullptr};
  std::unique_ptr<Disks> disks_;
  std::unique_ptr<Wires> wires_;
  std::unique_ptr<Events> events_;
  std::unique_ptr<CallFaultsKernel> kernel_;
  std::unique_ptr<detail::Stage> stage_;
};

}  // namespace weft::sim
