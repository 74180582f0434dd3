// Simulation: whole services in one process and one thread, in virtual time, by a seed.
//
//   weft::sim::explore({.seeds = 1000}, [](weft::sim::World& world) {
//     world.host("bank", [] { run_bank("0.0.0.0:8080"); });
//     world.host("shop", [] { run_shop("bank:8080"); });
//     world.network().latency(1ms, 50ms).loss(0.01);
//     world.after(10s, [&] { world.partition("shop", "bank"); });
//     world.after(40s, [&] { world.heal(); world.restart("bank"); });
//     world.run_for(24h);
//     weft::sim::check(payments("bank") == orders("shop"), "each order is paid once");
//   });
//
// The code that is simulated is the program's own: fibers, timers, pools, weft::net, weft::http.
// A failure names its seed, and WEFT_SIM_SEED=<seed> in the environment makes every explore() run
// that seed alone; WEFT_SIM_TRACE=<file> has the story of a failure written there for Perfetto.
// docs/simulation.md is the guide, and says what is simulated.
// Calls come from fibers of the simulation, or from anywhere that they name; only calls that say so
// park, or throw std::logic_error elsewhere. No call synchronizes: a simulation has one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <weft/clock.hpp>

namespace weft::sim {

// How the next fiber is chosen among the ready ones.
enum class Strategy : std::uint8_t {
  // Each with the same chance; turns end early now and then, with a chance of the run's own.
  random,
  // Probabilistic concurrency testing: fibers have priorities by chance, and the one of the highest
  // priority runs; it loses its priority at Options::depth - 1 places. Finds each fault that needs
  // that few changes of order with a chance that can be computed.
  priorities,
  // Every schedule with at most Options::max_preemptions of them, one after the other. For small
  // bodies.
  exhaustive,
};

// Times are virtual unless they say otherwise.
struct Options {
  // explore() runs this many seeds, beginning with the first. The exhaustive strategy has one seed.
  std::uint64_t seeds = 100;
  std::uint64_t first_seed = 1;
  Strategy strategy = Strategy::random;
  unsigned depth = 3;
  unsigned max_preemptions = 2;
  // The exhaustive strategy runs at most this many; Report::is_complete is false when there are
  // more.
  std::uint64_t max_schedules = 1'000'000;
  // The most fibers of a host that interleave, as on that many workers. The next one begins when
  // one of them waits, or has had turns for 10 ms. 0: all fibers.
  unsigned workers = 0;
  // What each turn of a fiber takes, so that loops which wait for time make progress.
  std::chrono::nanoseconds turn_time = std::chrono::microseconds(1);
  // A world that lasts longer, or in which fibers have had more turns, has failed: it does not end.
  std::chrono::nanoseconds time_limit = std::chrono::hours(24 * 366);
  std::uint64_t max_turns = 100'000'000;
  // How long fibers that the body has spawned may go on after its end; then they are a leak.
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  // Bytes of stack of a fiber that asks for none: more than in a Runtime, because calls of
  // weft::blocking() run there, too.
  std::size_t stack_size = std::size_t{256} << 10;
  // A failure is run again with fewer faults and preemptions, as long as it remains one.
  bool shrinks = true;
  // Rows of the story that a failure shows.
  std::size_t story_rows = 60;
  // Asked after each run: a test framework that counts failures of its own says so here. Empty:
  // nothing is asked.
  std::function<bool()> has_failed = {};
};

// The outcome of runs without a failure.
struct Report {
  std::uint64_t runs = 0;                 // Seeds, or schedules of the exhaustive strategy.
  std::uint64_t turns = 0;                // Turns of fibers in all runs.
  std::chrono::nanoseconds simulated{0};  // Virtual time of all runs.
  bool is_complete = true;                // Exhaustive: there is no other schedule.
};

// A run that failed. what() has the seed, the reason, how to repeat it, and the story. A plain
// value; no call throws.
class Failure : public std::runtime_error {
 public:
  // Made by explore() alone.
  Failure(std::uint64_t seed, std::string reason, std::string story);

  // The seed that fails.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  // What went wrong, in a sentence or a list of fibers.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  // What happened before, one row for each event, a column for each host.
  [[nodiscard]] const std::string& story() const noexcept { return story_; }

 private:
  std::uint64_t seed_;
  std::string reason_;
  std::string story_;
};

class Core;

// What lies between the hosts. Streams (TCP) lose nothing: a lost part comes late, when it has been
// sent again. Settings hold for what is sent from then on. From fibers of the simulation; no call
// parks, throws or synchronizes.
class Network {
 public:
  // Made by the World alone.
  explicit Network(Core& core) noexcept : core_(core) {}

  // Of each part of a stream and each datagram, evenly spread. 0.2 to 2 ms unless this is called.
  Network& latency(std::chrono::nanoseconds least, std::chrono::nanoseconds most);
  // The chance that a part or a datagram is lost. 0 unless this is called.
  Network& loss(double chance);
  // The chance that a datagram comes twice. 0 unless this is called.
  Network& duplication(double chance);
  // Bounds each host's sending side. It has no bound (0) unless this is called.
  Network& bandwidth(std::uint64_t bytes_per_second);

 private:
  Core& core_;
};

// Faults that come by the seed; see World::disturb().
struct Disturbance {
  // Injects at most this many of each kind, at random moments in [0, within) from now.
  unsigned partitions = 0;
  unsigned restarts = 0;  // Crashes, each followed by a restart.
  unsigned stops = 0;     // SIGSTOP, then SIGCONT.
  // Each is followed by a restart: what was not synced may be lost.
  unsigned power_cuts = 0;
  std::chrono::nanoseconds within = std::chrono::minutes(1);
  // How long each lasts, by chance.
  std::chrono::nanoseconds shortest = std::chrono::milliseconds(100);
  std::chrono::nanoseconds longest = std::chrono::seconds(10);
};

// Chances that calls of a host's fibers fail, as docs/faults.md has it.
struct CallFaults {
  // Of each call about a socket: no descriptors, addresses, or memory; a connection that is aborted
  // or reset.
  double sockets = 0;
  // Of each call about a file: no descriptors, no room, a disk that cannot be read or written.
  double files = 0;
  // The chance of each `operator new` for no aligned type: std::bad_alloc.
  double memory = 0;
};

// The hosts and what becomes of them. The body is a fiber of a host of its own, "world", which the
// others reach by that name. Call it from fibers of the simulation. Only calls that say so park;
// hosts are named by the names that they were given, and another name throws std::invalid_argument.
// No call synchronizes.
class World {
 public:
  // Made by explore() alone.
  explicit World(Core& core) noexcept : core_(core), network_(core) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // A host that runs `main` in a fiber, at once and after each restart. Its name is its address for
  // net::dial() and net::resolve(). Its fibers are the ones that `main` spawns, and theirs; a host
  // may outlive its main. An exception that leaves a fiber fails the run.
  void host(std::string_view name, std::function<void()> main);
  // Ends the host's process as SIGKILL does: no fiber of it ever runs again, nothing is destroyed,
  // and its sockets are closed by the system, with a reset where it had not read everything.
  void crash(std::string_view name);
  // Cuts its power: as crash(), but peers hear nothing of it until they send to the next process,
  // and its files lose what was not synced, as a journaling file system may.
  void power_off(std::string_view name);
  // Starts `main` again, after a crash if it still runs.
  void restart(std::string_view name);
  // Its fibers stand still, while its sockets take what comes; until go_on().
  void stop(std::string_view name);
  // Ends stop().
  void go_on(std::string_view name);
  // Returns whether it has been started and has not crashed.
  [[nodiscard]] bool is_up(std::string_view name) const;

  // What is sent between the two, in both directions, does not arrive until heal().
  void partition(std::string_view one, std::string_view other);
  // The same for what the first sends to the second.
  void partition_one_way(std::string_view from, std::string_view to);
  // Ends all partitions.
  void heal();
  // Ends partitions between the two hosts.
  void heal(std::string_view one, std::string_view other);
  // The most sockets that the host may have at once: one more is too_many_files_open. Its open
  // sockets stay open.
  void limit_sockets(std::string_view name, std::size_t most);

  // From now on the host's clocks, weft::Clock and weft::WallClock, run this much too fast, or too
  // slow (negative): in (-1'000'000, 1'000'000]. Its time limits and timers go by them, but a wait
  // that has begun keeps its end. Throws std::invalid_argument for other numbers, and for the
  // world.
  void clock_drift(std::string_view name, double parts_per_million);
  // From now on calls of the host's fibers fail by chance. Each is in the story, and does not fail
  // any more where a failure needs it not (Options::shrinks). Throws std::invalid_argument for
  // memory of the world; std::logic_error for memory, if the program has an operator new of its
  // own.
  void fail_calls(std::string_view name, const CallFaults& faults);
  // Sets the host's wall clock, which HTTP's dates and weft::WallClock show, forwards or back.
  void clock_jump(std::string_view name, std::chrono::nanoseconds by);

  // A file of the host, on its disk: made, or replaced. Relative paths begin at the root, too.
  void put_file(std::string_view name, const std::string& path, std::string bytes);
  // What the host's processes would read there; nothing if there is no such file.
  [[nodiscard]] std::optional<std::string> file(std::string_view name,
                                                const std::string& path) const;
  // Crashes the host, and takes all its files away; restart() begins without any.
  void replace_disk(std::string_view name);
  // The most bytes that the host's files may have: a write beyond is no_space_on_device. They have
  // what they have.
  void limit_disk(std::string_view name, std::uint64_t most);

  // Latency, loss and the like.
  [[nodiscard]] Network& network() noexcept { return network_; }

  // Faults at moments that the seed decides, between and at the hosts that there are now. Each is
  // in the story, and left out again if a failure needs it not (Options::shrinks).
  void disturb(const Disturbance& wanted);

  // Calls `action` in a fiber of the world, this long from now. It is no leak.
  void after(std::chrono::nanoseconds delay, std::function<void()> action);
  // Lets time pass. Parks.
  void run_for(std::chrono::nanoseconds time);
  // Lets time pass until `condition` is true, which is looked at after each pause; false when the
  // limit is over. Parks.
  bool run_until(const std::function<bool()>& condition, std::chrono::nanoseconds limit,
                 std::chrono::nanoseconds pause = std::chrono::milliseconds(10));
  // Since the beginning.
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept;
  // The seed of this run.
  [[nodiscard]] std::uint64_t seed() const noexcept;

 private:
  Core& core_;
  Network network_;
};

// Runs `body` once for each seed, one after the other, each in a world of its own; returns when all
// have passed. One at a time in a process. From a plain thread, which is blocked meanwhile.
// A run fails when check() is false or an exception leaves a fiber; when nothing can happen any
// more and the body has not returned (a deadlock); when fibers that the body has spawned are left
// after Options::grace; by the limits of the options, and by what is refused. Fibers of a world
// that is over never run again, and what they hold is not destroyed.
// Throws Failure, std::system_error, std::invalid_argument.
Report explore(const Options& options, const std::function<void(World&)>& body);
// Does the same as explore() with one seed, or WEFT_SIM_SEED, for a body without hosts.
void run(const std::function<void()>& body, Options options = {});
// Does the same as explore(), but runs each seed twice. Throws Failure with the first decision that
// differs, and the calls of all fibers there.
Report check_determinism(const Options& options, const std::function<void(World&)>& body);

// The next calls are for fibers of a simulation; only calls that say so park. Elsewhere they throw
// std::logic_error, unless they say otherwise.

// Returns whether the caller is a fiber of a simulation. From anywhere; never parks.
[[nodiscard]] bool is_simulated() noexcept;
// Returns when every other fiber waits for what only time, or the caller, can bring. Parks. One
// caller at a time.
void settle();
// Fails the run unless `holds`; the caller does not return then.
void check(bool holds, std::string_view sentence);
// Fails the run. The caller never runs again.
[[noreturn]] void fail(std::string_view sentence);
// A row of the story, in the column of the caller's host. Nothing elsewhere.
void note(std::string_view text);
// A number in [0, bound) that depends on the seed: instead of other random numbers. `bound` is at
// least 1.
[[nodiscard]] std::uint64_t random(std::uint64_t bound);
// True with this chance, by the seed.
[[nodiscard]] bool chance(double probability);
// A place where other fibers may come first, by the strategy: between two accesses to what fibers
// share without weft. May switch. Nothing elsewhere.
void point();

}  // namespace weft::sim
