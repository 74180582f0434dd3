// The state that all parts of a run share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <semaphore>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/sim.hpp>

#include "libs/sim/chance.hpp"
#include "libs/sim/plan.hpp"
#include "libs/sim/story.hpp"
#include "scheduler/simulation.hpp"

namespace weft::sim {

enum class HostState : std::uint8_t { down, up, stopped };

// A monotonic clock that runs faster or slower than the simulation's clock, and a wall clock that
// follows it. All values are nanoseconds.
struct HostClock {
  std::int64_t own_base;      // This clock's time when the present rate began.
  std::int64_t machine_base;  // The simulation's time at that moment.
  std::int64_t drift = 0;     // Nanoseconds per second by which this clock runs too fast.
  std::int64_t wall_offset = 0;

  [[nodiscard]] std::int64_t at(std::int64_t machine) const noexcept;
  // Returns the first moment of the simulation at which this clock shows the given time.
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
  std::uint32_t life = 0;     // The number of its process, which no other process of the run has.
  std::uint64_t actors = 0;   // The living fibers of this life.
  unsigned busy_workers = 0;  // Only Core::choose_on_workers() uses it.
  std::vector<std::int64_t> computing;  // When computing fibers release their workers; nanoseconds.
  std::vector<fibers::Fiber*> held;     // Ready fibers while the host is stopped.
};

// The hosts and their clocks, the host of the running fiber, the story, the failing calls, and the
// end of the run. The network, the disks and the system calls refer to it, and it refers to none of
// them. Only the stage's worker uses it, unless a comment names another user.
class RunState {
 public:
  RunState(const Options& options, std::uint64_t seed, const Plan& plan,
           const detail::Simulation& simulation);

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] const Plan& plan() const noexcept { return plan_; }
  // Returns the time of the simulation's clock.
  [[nodiscard]] std::int64_t now() const noexcept { return simulation_.now(); }
  [[nodiscard]] std::int64_t elapsed() const noexcept { return now() - beginning_; }

  // --- Hosts ---

  void add_host(std::string_view name, std::function<void()> main);
  // Returns a number for a new process.
  [[nodiscard]] std::uint32_t new_life() noexcept { return ++lives_; }
  // Throws std::invalid_argument.
  [[nodiscard]] std::uint32_t find_host(std::string_view name) const;
  [[nodiscard]] std::optional<std::uint32_t> try_find_host(std::string_view name) const;
  [[nodiscard]] Host& host(std::uint32_t number) noexcept { return *hosts_[number]; }
  [[nodiscard]] const Host& host(std::uint32_t number) const noexcept { return *hosts_[number]; }
  [[nodiscard]] std::span<const std::unique_ptr<Host>> hosts() const noexcept { return hosts_; }
  // Returns the number of the running fiber's host.
  [[nodiscard]] std::uint32_t current_host() const noexcept { return current_host_; }
  void switch_to_host(std::uint32_t number) noexcept { current_host_ = number; }
  // Returns the running fiber's host.
  [[nodiscard]] Host& here() noexcept { return *hosts_[current_host_]; }

  // --- Clocks of the running fiber's host ---

  [[nodiscard]] std::int64_t host_now() const noexcept;
  [[nodiscard]] std::int64_t machine_time(std::int64_t host_time) const noexcept;
  // Returns nanoseconds since 1970.
  [[nodiscard]] std::int64_t wall_clock() const noexcept;
  // Lets the clock drift from now on. Throws std::invalid_argument for the world, and for a rate
  // outside of the permitted range.
  void drift(std::uint32_t number, double parts_per_million);

  // --- The story ---

  void note(std::uint32_t host, std::string text);
  // The plain thread may also call the next two functions.
  [[nodiscard]] std::string story() const { return story_.table(host_names()); }
  [[nodiscard]] std::string trace() const { return story_.trace(host_names()); }

  // --- The end ---

  // Begins the run. Returns false if an earlier call has already begun it.
  bool begin() noexcept;
  [[nodiscard]] bool is_running() const noexcept { return phase_ == Phase::running; }
  // Fails the run, which ends after the present turn. Later calls do not change the reason.
  void fail(std::string reason) noexcept;
  void end() noexcept;
  // Waits for the end of the run, on the plain thread. Returns false if `patience` passes first.
  [[nodiscard]] bool ends_within(std::chrono::nanoseconds patience) {
    return over_.try_acquire_for(patience);
  }
  // Returns the reason of a failure. The plain thread calls it after the end of the run.
  [[nodiscard]] const std::optional<std::string>& failure() const noexcept { return failure_; }

  // --- Calls that fail ---

  // Returns whether a call of the running fiber must fail: true with probability `chance`.
  [[nodiscard]] bool is_failure_due(double chance) noexcept;
  // With probability `chance`, returns one of `errors`, with which the call must fail; otherwise
  // returns 0.
  [[nodiscard]] int draw_error(double chance, const char* call,
                               std::span<const int> errors) noexcept;
  // Returns how many calls were drawn to fail, including calls that the plan omits.
  [[nodiscard]] std::uint64_t failures() const noexcept { return failures_; }
  // Only Shelter calls the next two functions.
  void enter_shelter() noexcept { ++shelters_; }
  void leave_shelter() noexcept { --shelters_; }
  [[nodiscard]] bool is_sheltered() const noexcept { return shelters_ != 0; }

 private:
  enum class Phase : std::uint8_t { before, running, over };

  [[nodiscard]] std::vector<std::string> host_names() const;

  const Options& options_;
  const std::uint64_t seed_;
  const Plan& plan_;
  const detail::Simulation& simulation_;
  const std::int64_t beginning_;
  Story story_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::uint32_t current_host_ = 0;
  std::uint32_t lives_ = 0;
  std::uint64_t failures_ = 0;
  unsigned shelters_ = 0;
  Phase phase_ = Phase::before;
  std::optional<std::string> failure_;
  std::binary_semaphore over_{0};
};

}  // namespace weft::sim
