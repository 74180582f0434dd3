// Simulates whole services in one process and one thread, in virtual time. The same seed gives the
// same run, unless the run depends on something outside the simulation.
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
// The simulation runs the program's own code. When a run fails, the Failure contains the run's
// seed. WEFT_SIM_SEED=<seed> makes every explore() run only that seed. WEFT_SIM_TRACE=<file> makes
// explore() write the events of a failed run to a file for Perfetto. See docs/simulation.md.
// Context: fibers of the simulation; calls do not park.
// Throws: fail(), check(false), settle(), random(), chance() throw logic_error outside simulations.
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

// Selects how the simulation chooses the ready fiber that runs next.
enum class Strategy : std::uint8_t {
  // Each ready fiber is equally likely to run next. Turns sometimes end early, with a probability
  // that the seed determines.
  random,
  // Probabilistic concurrency testing: the fiber with the highest random priority runs. Its
  // priority drops to the lowest at Options::depth - 1 random points, and after 64 turns in a row.
  // A fault that needs at most depth - 1 such drops is found with a known minimum probability.
  priorities,
  // Runs all schedules with at most Options::max_preemptions preemptions. Suits small bodies.
  exhaustive,
};

// Configures explore(). Times are virtual unless noted.
struct Options {
  // The number of seeds that explore() runs. The exhaustive strategy uses one seed.
  std::uint64_t seeds = 100;
  std::uint64_t first_seed = 1;
  Strategy strategy = Strategy::random;
  unsigned depth = 3;
  unsigned max_preemptions = 2;
  // The maximum number of schedules that the exhaustive strategy runs. If there are more,
  // Report::is_complete is false.
  std::uint64_t max_schedules = 1'000'000;
  // At most this many fibers of a host interleave, as if it had this many workers. Another fiber
  // starts once one of these fibers waits, yields or has run for 10 ms. 0 means all fibers.
  unsigned workers = 0;
  // The virtual time that each turn of a fiber takes, so that loops that poll the clock end.
  std::chrono::nanoseconds turn_time = std::chrono::microseconds(1);
  // A run that exceeds one of these limits fails, because it would probably never end.
  std::chrono::nanoseconds time_limit = std::chrono::hours(24 * 366);
  std::uint64_t max_turns = 100'000'000;
  // If a ready fiber gets no turn for this time plus 64 x turn_time per ready fiber, it starves,
  // and the run fails. The extra time allows for bad luck in the random choice. 0 means no limit.
  std::chrono::nanoseconds starvation = std::chrono::seconds(10);
  // The real time after which a fiber that runs without waiting is reported on stderr, with its
  // call stack.
  std::chrono::nanoseconds patience = std::chrono::seconds(10);
  // How long the body's fibers may run after the body returns. If any remain, the run fails.
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  // The size of a fiber's stack in bytes. The default exceeds that of a Runtime, because the calls
  // of weft::blocking() also run on this stack.
  std::size_t stack_size = std::size_t{256} << 10;
  // Whether explore() seeks a shorter run with the same failure and fewer faults, losses and
  // preemptions. It never simplifies exhaustive runs, data races or failures due to has_failed.
  bool shrinks = true;
  // The maximum number of rows in Failure::story(), which shows only the last events of a run.
  std::size_t story_rows = 60;
  // For test frameworks: called after a passed run. If true, the run fails, without a trace file.
  std::function<bool()> has_failed = {};
};

// Describes the outcome of runs without a failure.
struct Report {
  std::uint64_t runs = 0;                 // The number of seeds, or of exhaustive schedules.
  std::uint64_t turns = 0;                // The number of fiber turns in all runs.
  std::chrono::nanoseconds simulated{0};  // The total virtual time of all runs.
  bool is_complete = true;                // False if max_schedules was too small.
};

// Describes a failed run. what() contains the seed, reason and story, and how to repeat the run.
// Context: plain value; only the constructors and assignments may throw.
class Failure : public std::runtime_error {
 public:
  // Creates a failure, for explore().
  Failure(std::uint64_t seed, std::string reason, std::string story);

  // Returns the failing seed.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  // Returns the reason, as a sentence or a list of fibers.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  // Returns the events before the failure, with a row for each event and a column for each host.
  [[nodiscard]] const std::string& story() const noexcept { return story_; }

 private:
  std::uint64_t seed_;
  std::string reason_;
  std::string story_;
};

class Core;

// Configures the network between the hosts. Streams (TCP) lose no bytes: a lost segment is sent
// again and arrives late. Settings affect only later sends.
// Context: fibers of the simulation; no call parks.
// Throws: std::invalid_argument from latency() unless 0 <= `least` <= `most`.
class Network {
 public:
  // Makes a Network that refers to the World's core.
  explicit Network(Core& core) noexcept : core_(core) {}

  // Sets the latency range of datagrams and stream segments, by default 0.2 to 2 ms.
  Network& latency(std::chrono::nanoseconds least, std::chrono::nanoseconds most);
  // Sets the chance that a datagram or a stream segment is lost. 0 by default.
  Network& loss(double chance);
  // Sets the chance that a datagram arrives twice. 0 by default.
  Network& duplication(double chance);
  // Limits the rate of stream bytes from each host. 0, the default, means no limit.
  Network& bandwidth(std::uint64_t bytes_per_second);

 private:
  Core& core_;
};

// Selects the faults that World::disturb() injects at random moments.
struct Disturbance {
  // The maximum number of faults of each kind, which occur at random moments in [0, within].
  unsigned partitions = 0;
  unsigned restarts = 0;  // Crashes; a restart follows each crash.
  unsigned stops = 0;     // SIGSTOP, then SIGCONT.
  // Power cuts, which may lose unsynced data; a restart follows each power cut.
  unsigned power_cuts = 0;
  std::chrono::nanoseconds within = std::chrono::minutes(1);
  // The range of the faults' random durations.
  std::chrono::nanoseconds shortest = std::chrono::milliseconds(100);
  std::chrono::nanoseconds longest = std::chrono::seconds(10);
};

// Sets the probabilities that calls of a host's fibers fail; see docs/faults.md.
struct CallFaults {
  // The probability that a socket call fails, for lack of descriptors, addresses, names or memory,
  // because the network is unreachable, or because a connection is refused, aborted or reset.
  double sockets = 0;
  // The probability that a file call fails, for lack of descriptors or room, or because the disk
  // fails. With the same probability, a read or a write transfers only some of the bytes.
  double files = 0;
  // The probability that `operator new` without an alignment throws std::bad_alloc.
  double memory = 0;
};

// Controls the hosts and their faults. The body is a fiber of a host named "world", to which other
// hosts can connect.
// Context: fibers of the simulation; run_for(), run_until() and check_end() park.
// Throws: std::invalid_argument if a name is unknown, a new host's name is empty or in use, a call
// would end or stop the host "world", or disturb() finds no hosts.
class World {
 public:
  // Makes a World that refers to the core of explore().
  explicit World(Core& core) noexcept : core_(core), network_(core) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Runs `main` in a fiber of a new host, now and after each restart. net::dial() and
  // net::resolve() resolve `name`. A fiber belongs to the host of the fiber that spawned it, and
  // may outlive `main`. An exception that leaves a fiber fails the run.
  void host(std::string_view name, std::function<void()> main);
  // Ends the host's process as SIGKILL does: its fibers never run again, and no object is
  // destroyed. The system closes its sockets, with a reset if a socket has unread bytes.
  void crash(std::string_view name);
  // Ends the host as crash() does, but peers that send to it see a timeout or, after a restart, a
  // reset. Files may lose unsynced data, as on a journaling file system.
  void power_off(std::string_view name);
  // Starts `main` again. If the host is still running, restart() crashes it first.
  void restart(std::string_view name);
  // Suspends the host's fibers until go_on(); its sockets still receive data.
  void stop(std::string_view name);
  // Lets the host's fibers run again after stop().
  void go_on(std::string_view name);
  // Waits until `main` and all fibers of the host have ended; parks. Fails the run if a fiber still
  // exists after Options::grace, or if the host leaks open sockets or files. If the run fails, the
  // call does not return. A crashed host always passes this check.
  void check_end(std::string_view name);
  // Returns whether the host has started, and has neither crashed nor lost power.
  [[nodiscard]] bool is_up(std::string_view name) const;

  // Drops all packets between the two hosts, in both directions, until heal().
  void partition(std::string_view one, std::string_view other);
  // Drops all packets that `from` sends to `to`.
  void partition_one_way(std::string_view from, std::string_view to);
  // Ends all partitions.
  void heal();
  // Ends one partition per direction; after two partition() calls, two heal() calls are needed.
  void heal(std::string_view one, std::string_view other);
  // Limits the number of the host's sockets. Calls that open further sockets then fail with
  // too_many_files_open; open sockets stay open.
  void limit_sockets(std::string_view name, std::size_t most);

  // Makes the host's clocks, weft::Clock and weft::WallClock, run too fast, or too slow if the
  // number is negative. The range is (-1'000'000, 1'000'000]. Waits that begin later measure
  // time by these clocks.
  // Throws: std::invalid_argument for a number out of range, and for the host "world".
  void clock_drift(std::string_view name, double parts_per_million);
  // Makes calls of the host's fibers fail at random. Failure::story() shows each fault.
  // Throws: std::invalid_argument for memory faults of the host "world"; std::logic_error for
  // memory faults if the program defines its own operator new.
  void fail_calls(std::string_view name, const CallFaults& faults);
  // Moves the host's wall clock forwards or back. weft::WallClock and HTTP dates then change.
  void clock_jump(std::string_view name, std::chrono::nanoseconds by);

  // Creates or replaces a file on the host's disk. A relative path is resolved from the root.
  void put_file(std::string_view name, const std::string& path, std::string bytes);
  // Returns a file as the host's processes would read it, or std::nullopt if there is none.
  [[nodiscard]] std::optional<std::string> file(std::string_view name,
                                                const std::string& path) const;
  // Crashes the host and removes all its files. restart() then starts it with an empty disk.
  void replace_disk(std::string_view name);
  // Limits the total size of the host's files in bytes. A write beyond this limit fails with
  // no_space_on_device, and existing files stay unchanged.
  void limit_disk(std::string_view name, std::uint64_t most);

  // Lets fibers wait for real descriptors of this kind. A wait for a kind not let in fails the run.
  // `kind` is a prefix of the descriptor's link target in /proc/self/fd: "pipe", "socket",
  // "anon_inode:[eventfd]", "/dev/tty". "thread" lets plain threads wake fibers. External events
  // take only real time, and do not depend on the seed. While one may come, the simulation waits up
  // to 1 ms of real time before each step of virtual time, and detects no deadlock.
  void let_in(std::string_view kind);

  // Lets fibers connect to a real host, with TCP or a connected UDP socket. net::dial() and
  // net::resolve() then accept `name`, and return simulated addresses. The system resolves
  // `address`, a name or an IP address; if it is empty, the system resolves `name`. After each
  // connect, send or successful receive with that host, virtual time stops for up to `patience` of
  // real time. A crash of the calling host closes its connections.
  // Throws: std::invalid_argument for an empty name, a simulated host, or a negative patience.
  void let_in_host(std::string_view name, std::string_view address = {},
                   std::chrono::nanoseconds patience = std::chrono::seconds(1));

  // Returns the network, for settings such as latency and loss.
  [[nodiscard]] Network& network() noexcept { return network_; }

  // Injects faults at random moments, in and between current hosts. Failure::story() shows them.
  void disturb(const Disturbance& wanted);

  // Calls `action` after `delay` in a new fiber of the caller's host. Leak checks ignore the fiber.
  void after(std::chrono::nanoseconds delay, std::function<void()> action);
  // Parks for `time` of virtual time.
  void run_for(std::chrono::nanoseconds time);
  // Parks until `condition` returns true. Calls it at once and after each pause. Returns false if
  // `limit` passed first.
  bool run_until(const std::function<bool()>& condition, std::chrono::nanoseconds limit,
                 std::chrono::nanoseconds pause = std::chrono::milliseconds(10));
  // Returns the virtual time since the run began.
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept;
  // Returns the seed of this run.
  [[nodiscard]] std::uint64_t seed() const noexcept;

 private:
  Core& core_;
  Network network_;
};

// Runs `body` for each seed in a new world, and returns when all runs have passed. Only one call
// runs at a time. A run fails on fail(), a false check() or a true has_failed(). It also fails if
// an exception leaves a fiber, a fiber starves, or the thread sanitizer reports a data race. It
// fails, too, if fibers or descriptors of the body remain after Options::grace, or a host without
// fibers has open descriptors. Deadlocks, most calls that the simulation refuses, and runs past
// time_limit or max_turns are failures. Remaining fibers never run again, and their objects leak.
// Context: plain threads; blocks the thread.
// Throws: Failure, std::system_error, std::invalid_argument, std::logic_error, std::runtime_error.
Report explore(const Options& options, const std::function<void(World&)>& body);
// Works like explore(), but without hosts, and with one seed (first_seed or WEFT_SIM_SEED).
// Context, Throws: the same as for explore().
void run(const std::function<void()>& body, Options options = {});
// Works like explore(), but runs each seed twice, without has_failed, shrinks or WEFT_SIM_TRACE. If
// runs differ, the Failure shows the first different decision with call stacks, or both stories.
// Context, Throws: the same as for explore().
Report check_determinism(const Options& options, const std::function<void(World&)>& body);

// The functions below are for fibers of a simulation.

// Returns whether the caller is a fiber of a simulation.
// Context: fibers and plain threads; does not park.
[[nodiscard]] bool is_simulated() noexcept;
// Parks until all other fibers wait. Returns before virtual time moves to the next timer or event.
// Context: fibers of the simulation; parks.
// Throws: also std::logic_error if another fiber is in settle().
void settle();
// Fails the run unless `holds` is true; after a failure the call does not return.
void check(bool holds, std::string_view sentence);
// Fails the run. The caller never runs again.
[[noreturn]] void fail(std::string_view sentence);
// Adds a row to the story, in the column of the caller's host. Has no effect outside a simulation.
void note(std::string_view text);
// Returns a random number in [0, bound) from the seed. A bound of 0 throws std::invalid_argument.
[[nodiscard]] std::uint64_t random(std::uint64_t bound);
// Returns true with this probability; the seed determines the result.
[[nodiscard]] bool chance(double probability);
// Lets another fiber run first if the strategy selects one. Call point() between two accesses to
// data that fibers share without a weft lock. Has no effect outside a simulation.
void point();
// Simulates a computation: `time` of virtual time passes, and the caller keeps its worker
// (Options::workers). Has no effect outside a simulation.
// Context: fibers and plain threads; parks fibers of a simulation.
void compute(std::chrono::nanoseconds time);

}  // namespace weft::sim
