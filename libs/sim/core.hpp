// The state of one world.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <semaphore>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/waist.hpp>
#include <weft/sim.hpp>

#include "libs/sim/chance.hpp"
#include "libs/sim/decisions.hpp"
#include "libs/sim/plan.hpp"
#include "libs/sim/schedule.hpp"
#include "libs/sim/story.hpp"
#include "libs/sim/turn_watch.hpp"
#include "scheduler/simulation.hpp"

namespace weft::sim {

class CallFaultsKernel;
class Disks;
class Wires;

enum class HostState : std::uint8_t { down, up, stopped };

// A monotonic clock that runs faster or slower than the simulation's clock, and a wall clock that
// follows it. All values are nanoseconds.
struct HostClock {
  std::int64_t own_base;      // This clock's time when the present rate began.
  std::int64_t machine_base;  // The simulation's time at that moment.
  std::int64_t drift = 0;     // Nanoseconds a second by which this clock runs too fast.
  std::int64_t wall_offset = 0;

  [[nodiscard]] std::int64_t at(std::int64_t machine) const noexcept;
  // Returns the first moment of the simulation at which this clock shows that time.
  [[nodiscard]] std::int64_t machine_time(std::int64_t own) const noexcept;
};

struct Host {
  HostClock clock;
  Chance failure_chance;
  CallFaults faults = {};
  Chance chance;  // For the random numbers that its fibers draw.
  std::string name;
  std::function<void()> main;
  HostState state = HostState::down;
  std::uint32_t life = 0;
  std::uint64_t actors = 0;             // The living ones of this life.
  unsigned busy_workers = 0;            // Only Core::choose_on_workers() uses it.
  std::vector<std::int64_t> computing;  // When computing fibers release their workers; nanoseconds.
  std::vector<fibers::Fiber*> held;     // Ready fibers while the host is stopped.
};

// Makes all decisions of a world: the Simulation that its Stage obeys. Only the stage's worker uses
// it, unless a comment says otherwise. The plain thread that made the core waits in run() until the
// body has returned or the run has failed. From then on no fiber runs.
class Core final : public detail::Simulation {
 public:
  Core(const Options& options, std::uint64_t seed, const Plan& plan, Schedule& schedule);
  ~Core() override;

  // --- For the plain thread that made the core ---

  [[nodiscard]] DecisionLog& decisions() noexcept { return decisions_; }
  // Runs `body` until it returns or the run fails. Throws std::system_error.
  void run(const std::function<void(World&)>& body);
  [[nodiscard]] const std::optional<std::string>& failure() const noexcept { return failure_; }
  [[nodiscard]] std::uint64_t turns() const noexcept { return watch_.turns(); }
  [[nodiscard]] std::int64_t elapsed() const noexcept { return now_ - kBeginning; }
  [[nodiscard]] std::string story() const;
  [[nodiscard]] std::string trace() const;
  // Returns how many faults disturb() has drawn, including faults that the plan omits.
  [[nodiscard]] std::uint64_t faults() const noexcept { return faults_; }
  [[nodiscard]] bool has_lost_any() const noexcept;
  // Returns how many calls were drawn to fail, including calls that the plan omits.
  [[nodiscard]] std::uint64_t failures() const noexcept { return failures_; }

  // --- Simulation ---

  void spawned(fibers::Fiber& fiber) noexcept override;
  void ready(fibers::Fiber& fiber) noexcept override;
  [[nodiscard]] fibers::Fiber* take(bool& ends_turn) noexcept override;
  void woken_from_outside(fibers::Fiber& fiber) noexcept override;
  void ended(fibers::Fiber& fiber) noexcept override;
  void failed(std::exception_ptr failure) noexcept override;
  void panicked() noexcept override;
  [[nodiscard]] std::uint64_t random() noexcept override;
  [[nodiscard]] std::int64_t host_now() const noexcept override;
  [[nodiscard]] std::int64_t machine_time(std::int64_t host_time) const noexcept override;
  [[nodiscard]] std::int64_t wall_clock() const noexcept override;

  // --- For fibers of the world ---

  void add_host(std::string_view name, std::function<void()> main);
  // Throws std::invalid_argument.
  [[nodiscard]] std::uint32_t find_host(std::string_view name) const;
  [[nodiscard]] std::optional<std::uint32_t> try_find_host(std::string_view name) const;
  [[nodiscard]] Host& host(std::uint32_t number) noexcept { return *hosts_[number]; }
  [[nodiscard]] std::size_t host_count() const noexcept { return hosts_.size(); }
  void start(std::uint32_t number);
  // Ends all fibers of the host. If the caller is one of them, the call does not return.
  void end_host(std::uint32_t number, bool has_power);
  void stop(std::uint32_t number);
  void go_on(std::uint32_t number);
  // Lets the clock drift from now on. Throws std::invalid_argument for the world, and for a rate
  // outside of the permitted range.
  void drift(std::uint32_t number, double parts_per_million);
  // Returns the host of the running fiber.
  [[nodiscard]] std::uint32_t current_host() const noexcept { return current_host_; }
  void note(std::uint32_t host, std::string text);
  // Fails the run; the turn that runs is the last one. Only the first reason counts.
  void fail(std::string reason) noexcept;
  // Parks the caller, which never runs again.
  [[noreturn]] void leave_for_ever() noexcept;
  void settle();
  // Waits until the fibers of the host have ended; for the world, until all except the caller have.
  // Fails the run if fibers are left after Options::grace, or if descriptors are still open.
  void demand_end(std::uint32_t number);
  void disturb(World& world, const Disturbance& wanted);
  // Returns the stream of the caller's host. The draws of one host change nothing at another host.
  [[nodiscard]] Chance& user_chance() noexcept { return hosts_[current_host_]->chance; }
  // Throws std::invalid_argument, std::logic_error.
  void fail_calls(std::uint32_t number, const CallFaults& faults);
  [[nodiscard]] const CallFaults& faults_here() const noexcept {
    return hosts_[current_host_]->faults;
  }
  // Returns, with that chance, one of the errors, by which the call of that name must fail; 0
  // otherwise.
  [[nodiscard]] int draw_error(double chance, const char* call,
                               std::span<const int> errors) noexcept;
  // Only Shelter calls these two.
  void enter_shelter() noexcept { ++shelters_; }
  void leave_shelter() noexcept { --shelters_; }
  [[nodiscard]] Wires& wires() noexcept { return *wires_; }
  [[nodiscard]] Disks& disks() noexcept { return *disks_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  // Spawns a fiber that does not count as a leak of any host.
  void spawn_helper(std::function<void()> action);

  // --- For the event source, on the worker's own stack ---

  [[nodiscard]] bool is_running() const noexcept { return phase_ == Phase::running; }
  // Returns the next timer of the fibers.
  [[nodiscard]] Deadline next_timer() const noexcept;
  // Moves the clock to `next`, the next moment at which anything can happen, because no fiber is
  // ready. If it is never(), the run fails with a deadlock. Returns how many fibers it woke.
  std::size_t pass_time(Deadline next) noexcept;

  // Returns the core of the calling fiber's world. Throws std::logic_error outside of a world.
  [[nodiscard]] static Core& here();
  // Does the same, but returns null outside of a world.
  [[nodiscard]] static Core* find() noexcept;

 private:
  [[nodiscard]] bool is_dead(const Actor& actor) const noexcept {
    return actor.life != hosts_[actor.host]->life;
  }
  [[nodiscard]] std::vector<std::string> host_names() const;
  void refuse_wake(const fibers::Fiber& fiber) noexcept;
  void wait_for_end();
  void run_body(const std::function<void(World&)>& body);
  void decide(Decision decision) noexcept;
  // Returns the index in ready_ of the fiber that runs next; kNone if computing fibers occupy all
  // workers.
  [[nodiscard]] std::size_t choose() noexcept;
  [[nodiscard]] std::size_t choose_on_workers();
  [[nodiscard]] bool is_failure_due(double chance) noexcept;
  [[nodiscard]] bool allocation_fails() noexcept;
  void end() noexcept;

  const Options& options_;
  const std::uint64_t seed_;
  const Plan& plan_;
  Schedule& schedule_;
  Chance random_;
  Chance disturbance_;
  Story story_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::unordered_map<fibers::Fiber*, Actor> actors_;
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<Candidate> ready_;
  std::vector<Candidate> runnable_;   // The fibers of ready_ that have or can get a worker.
  bool ended_turn_ = false;           // Whether the fiber that ran last had to give way.
  std::size_t resumable_ = kNone;     // The index in ready_ of the fiber that ran last.
  fibers::Fiber* running_ = nullptr;  // The fiber that runs, or that ran last.
  std::uint32_t current_host_ = 0;
  bool current_is_helper_ = false;
  std::optional<std::uint32_t> spawn_host_;  // Set while a fiber is spawned for another host.
  bool spawns_helper_ = false;
  std::uint64_t spawns_ = 0;
  TurnWatch watch_;
  std::uint64_t faults_ = 0;
  std::uint64_t failures_ = 0;
  unsigned shelters_ = 0;
  detail::Waker settler_{};
  enum class Phase : std::uint8_t { before, running, over };
  Phase phase_ = Phase::before;
  std::optional<std::string> failure_;
  DecisionLog decisions_;
  // Relaxed: the queue that brings the fiber publishes it.
  detail::Atomic<fibers::Fiber*> woken_from_outside_{nullptr};
  std::binary_semaphore over_{0};
  std::unique_ptr<Disks> disks_;
  std::unique_ptr<Wires> wires_;
  std::unique_ptr<CallFaultsKernel> kernel_;
  std::unique_ptr<detail::Stage> stage_;
};

}  // namespace weft::sim
