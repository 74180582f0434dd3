// The constants that tune the scheduler. Times are in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>

// Each comment describes what a larger and a smaller number would cost, and gives the measurement
// if there is one. docs/decisions/0014 and 0017 have the tables. The sizes on which an algorithm
// relies, such as the size of a ring, are defined with the algorithm.
namespace weft::scheduler::tuning {

// --- Looks of a worker with work ---

// A worker chooses at most this many fibers to run between two looks. A look checks the work that
// the worker would otherwise never reach: the inject queue, the worker's oldest new fibers, timers
// and descriptors. With a larger number, such work waits longer; with a smaller one, looks cost
// more time. The number is prime, so that looks do not fall into step with a program.
inline constexpr std::uint32_t kMostDecisions = 61;
// The intended maximum time between two looks. Work that only a look can find may wait this long.
inline constexpr std::int64_t kLookPeriod = 200'000;
// A busy worker polls at most once per this period, because each poll is a system call.
inline constexpr std::int64_t kPollInterval = 20'000;
// At the end of each such period, a worker moves its oldest new fibers to the end of the queue.
// With a shorter period, a recursive program has more fibers at once. When workers moved fibers at
// each look (see kMostDecisions), the skynet benchmark took 1.5 times as long and used up to 55 MB.
inline constexpr std::int64_t kReachPeriod = 200'000;
// At the end of each kReachPeriod, a worker with n new fibers in its queue moves 1 + n /
// kNewFibersPerReached of them. A smaller number moves more fibers, as a shorter kReachPeriod does.
inline constexpr std::size_t kNewFibersPerReached = 512;
// A worker moves at most this many new fibers at a time. Without this bound, `weft_workloads W7_1m`
// used 3.5 GB and took eight times as long, because most of its fibers were parked at once.
inline constexpr std::size_t kMostReached = 8;
// A worker refills its empty ring with this many waiting fibers. With more, the prefetched parts of
// their stacks leave the L1 cache before the fibers run. With fewer, the worker locks the list of
// waiting fibers more often.
inline constexpr std::size_t kFetched = 16;

// --- Calls for help ---

// A worker whose queued fibers must wait longer than this wakes another one if a processor is idle.
// While any worker is asleep, each other worker performs a look at least this often. With a shorter
// time, workers are woken for fibers that would soon run anyway. A wakeup costs both workers 10 us.
inline constexpr std::int64_t kPatience = 50'000;
// This limit replaces kPatience if each usable processor has an awake worker. One more worker would
// then only compete for a processor.
inline constexpr std::int64_t kPatienceWhenCrowded = 1'000'000;
// A worker with waiting fibers calls for help: it wakes another worker. If the call may be useless,
// the worker pauses before the next call. These are the first and the longest such pause. A longer
// pause delays help that is needed; a shorter pause repeats useless calls.
inline constexpr std::int64_t kShortestCallPause = 100'000;
inline constexpr std::int64_t kLongestCallPause = 4'000'000;

// --- Long runs ---

// A run of this length counts as long. While a worker expects long runs, it checks before each run
// that a sleeping worker watches the timers and descriptors. For shorter runs, these checks cost
// more than they save.
inline constexpr std::int64_t kLongRun = 200'000;
// A worker considers its runs long if their average length is at least this, and its thread was not
// preempted. The worker checks for preemptions with one system call.
inline constexpr std::int64_t kCertainlyLongRun = 1'000'000;
// For averages between kLongRun and kCertainlyLongRun, a worker's processor time shows whether runs
// were long. The worker queries its processor time for one of this many such averages, because a
// query is a system call.
inline constexpr unsigned kSuspicionsPerQuestion = 8;
// For this long after a long run, a worker expects further long runs, and wakes sleeping workers
// sooner.
inline constexpr std::int64_t kLongRunMemory = 100'000'000;

// --- Searches: a worker without work steals ---

// How long a worker searches before it sleeps, if no descriptors are watched. The time is several
// times the cost of waking a sleeping thread. With a longer time, searches waste processor time;
// with a shorter time, the worker is often woken just after it fell asleep.
inline constexpr std::int64_t kSearchTime = 30'000;
// A thief checks a worker twice, this far apart, to distinguish waiting work from work in progress.
// With 1 us, two workers took up to 2.5 times as long as one worker for `weft_workloads W1`.
inline constexpr std::int64_t kBetweenLooks = 5'000;
// A thief takes no fibers that their owner will reach within this time, because a move costs more
// than the wait. With 5 us, a fiber of `weft_workloads W1 --workers 2` took 35 ns instead of 23 ns.
inline constexpr std::int64_t kWorthStealing = 20'000;
// A thief ignores an earlier check that is older than this: the worker's speed may have changed.
inline constexpr std::int64_t kLookIsOld = 1'000'000;

// --- Visits: a worker with work looks at others ---

// A worker makes visits at most once per kVisitPeriod, and to at most kVisited workers, because a
// visit reads cache lines that the visited worker writes.
inline constexpr std::int64_t kVisitPeriod = 200'000;
inline constexpr std::uint32_t kVisited = 4;
// A visitor takes no fibers that will run within this time: a move costs both workers 18 us.
inline constexpr std::int64_t kWorthVisiting = 50'000;
// A visitor takes at most this many fibers, because they delay the visitor's own fibers.
inline constexpr std::int64_t kMostRelieved = 1024;
// A fiber counts as computing if it has used this much processor time since a visitor found its run
// to be long.
inline constexpr std::int64_t kComputes = 100'000;
// The shortest time between two reads of a thread's state by a visitor; each read takes 5 us.
inline constexpr std::int64_t kAskPeriod = 2'000'000;

// --- Timers of other workers ---

// An idle worker runs an awake worker's timer once the timer is at least this late. A visitor runs
// such a timer only if its owner is stuck. With a shorter time, workers take timers from an owner
// that is about to run them.
inline constexpr std::int64_t kOverdue = 200'000;
// A visitor runs a timer that is at least this late even if the timer's owner is not stuck.
inline constexpr std::int64_t kLongOverdue = 2'000'000;

// --- Sleep ---

// A worker sleeps this long before it frees the memory of unused stacks and records. With a shorter
// time, the next burst of fibers causes page faults.
inline constexpr std::int64_t kTrimDelay = 100'000'000;
// In a runtime without a monitor, a worker sleeps at most this long while another worker is awake.
// Fibers in the awake worker's queue may therefore wait this long.
inline constexpr std::int64_t kUnmonitored = 1'000'000;

// --- The monitor ---

// While runs are long or memory is scarce, the sample period is kShortestSamplePeriod. Later it
// grows to kLongSamplePeriod, or to kLongestSamplePeriod if all workers are asleep. A sample reads
// cache lines of all workers. The monitor may find a stuck worker one period late. Under light
// load, samples cause much of the runtime's cost: each wakes the monitor, and takes some 17 us.
inline constexpr std::int64_t kShortestSamplePeriod = 1'000'000;
inline constexpr std::int64_t kLongSamplePeriod = 10'000'000;
inline constexpr std::int64_t kLongestSamplePeriod = 40'000'000;
// How long the sample period stays short after a sample has found a fiber with a long run.
inline constexpr std::int64_t kAlert = 200'000'000;
// A blocked worker keeps the sample period short, but only for this time: afterwards, a spare
// worker has replaced the blocked one. Each sample of a blocked worker reads a kernel file, which
// takes some 9 us.
inline constexpr std::int64_t kLongBlock = 1'000'000'000;
// The monitor sleeps once all workers have been asleep this long. With a shorter time, workers that
// wake up make more system calls to wake the monitor.
inline constexpr std::int64_t kMonitorRest = 500'000'000;

// The time between the starts of two censuses, and the number of 64-KiB slabs that a census visits
// in one step. With a longer period, dumps show less precisely how long fibers have been parked.
// With more slabs, a step keeps the monitor from other work for more than a third of a millisecond.
inline constexpr std::int64_t kCensusPeriod = 10'000'000'000;
inline constexpr std::size_t kCensusSlabs = 16;

// Once per this period, the monitor searches for fibers that wait for each other, unless more than
// kMostWaitsWatched fibers wait for other fibers. It reads the stacks of these fibers, which takes
// some microseconds per fiber.
inline constexpr std::int64_t kCyclePeriod = 60'000'000'000;
inline constexpr std::size_t kMostWaitsWatched = 5'000;

// --- The search for deadlocks ---

// The pause before the first search for a deadlock, and the longest pause between two searches.
// With shorter pauses, an idle process wakes a worker more often.
inline constexpr std::int64_t kFirstDeadlockPause = 100'000'000;
inline constexpr std::int64_t kLongestDeadlockPause = 60'000'000'000;

// --- Memory ---

// Stacks and records that stay unused in the shared stores for a whole period are freed in the next
// period.
inline constexpr std::int64_t kDecayPeriod = 500'000'000;
// The numbers of chains (of stacks and of records) freed in one step, which takes a fraction of a
// millisecond. A worker looks for work between two steps.
inline constexpr unsigned kTrimmedStackChains = 8;
inline constexpr unsigned kTrimmedFiberChains = 16;
// The largest numbers of chains freed in one step. Freeing 4096 stacks, or 128 chains, takes a few
// milliseconds.
inline constexpr std::int64_t kMostStackChains = 128;
inline constexpr std::int64_t kMostFiberChains = 256;

// The time between two comparisons of the process's memory with its goal, unless the memory grows
// fast. A longer time delays the reaction to bursts; a shorter time causes more file reads of 2 us
// each.
inline constexpr std::int64_t kMemoryLook = 10'000'000;

// --- Fibers without a stack ---

// The shortest time between two requests to the system for more stacks; pinned fibers are exempt.
inline constexpr std::int64_t kStackRequestPause = 10'000'000;
// The shortest time between two alarms. An alarm makes sleeping workers give their free stacks to
// the shared store. Workers that fall asleep within two such periods after an alarm also give
// theirs.
inline constexpr std::int64_t kStackAlarmPeriod = 100'000'000;
// If no fiber has run for this long, the shortage is reported as a deadlock. With a shorter time,
// slow programs would also be reported. A shortage counts as new if the previous one ended more
// than kShortageEnds ago.
inline constexpr std::int64_t kShortagePatience = 5'000'000'000;
inline constexpr std::int64_t kShortageEnds = 1'000'000'000;
// The minimum pause between two lines that report a shortage on stderr.
inline constexpr std::int64_t kShortageLinePeriod = 10'000'000'000;

// --- Samples of how long fibers wait and run ---

// A sample begins this long after the end of the previous sample. With a shorter pause,
// workers would take more samples, but each switch during a sample costs an extra call.
inline constexpr std::int64_t kSamplePause = 1'000'000;
// After this time the sampler abandons a fiber that has not run, and may follow another fiber.
inline constexpr std::int64_t kSamplePatience = 10'000'000'000;

// --- Blocking calls ---

// A helper thread ends when it has been idle for this time. With a shorter time, more blocking
// calls would have to start a thread.
inline constexpr std::int64_t kHelperIdleTime = 10'000'000'000;

}  // namespace weft::scheduler::tuning
