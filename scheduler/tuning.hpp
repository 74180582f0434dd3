// The constants of the scheduler's policy. Times are nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>

// Each comment describes what a larger and a smaller number would cost, and the measurement if
// there is one. docs/decisions/0014 and 0017 have the tables. The sizes on which an algorithm
// relies, such as the size of a ring, are defined with the algorithm.
namespace weft::scheduler::tuning {

// --- Looks of a worker with work ---

// After at most this many decisions, a worker looks at what it would otherwise never reach: the
// inject queue, its oldest new fibers, timers and descriptors. With more decisions, such work waits
// longer; with fewer, looks take more time from fibers. The number is a prime, so that looks do not
// coincide with a program's period.
inline constexpr std::uint32_t kMostDecisions = 61;
// The longest time between two looks. It bounds the wait of all work that only a look finds.
inline constexpr std::int64_t kLookPeriod = 200'000;
// The shortest time between two polls by a busy worker, because each poll is a system call.
inline constexpr std::int64_t kPollInterval = 20'000;
// Once in this time, a worker moves its oldest new fibers to the end of the queue. With less time,
// workers begin more subtrees early. With a move at each look, skynet took 1.5 times as long, and
// peaked at 55 MB.
inline constexpr std::int64_t kReachPeriod = 200'000;
// Each group of this many new fibers adds one fiber to such a move. A smaller number costs as much
// as a shorter period.
inline constexpr std::size_t kNewFibersPerReached = 512;
// A worker moves at most this many new fibers at a time. Without a bound, most of a million
// sleeping fibers were parked at once; they used 3.5 GB, and took eight times as long.
inline constexpr std::size_t kMostReached = 8;
// An empty ring is filled with this many waiting fibers. With more, the prefetched parts of their
// stacks leave the innermost cache before the fibers run. With fewer, the worker locks the list
// more often.
inline constexpr std::size_t kFetched = 16;

// --- Calls for help ---

// A fiber may wait this long while a processor is idle. While a worker sleeps, this is also the
// time between looks. With a shorter time, workers wake each other for fibers that would soon run;
// a wake costs each worker some 10 us.
inline constexpr std::int64_t kPatience = 50'000;
// Fibers may wait this long if all usable processors have an awake worker, because another worker
// would only share a processor.
inline constexpr std::int64_t kPatienceWhenCrowded = 1'000'000;
// The first and the longest pause after a call for help that may be useless. A longer pause delays
// help that is needed; a shorter pause repeats useless calls.
inline constexpr std::int64_t kShortestCallPause = 100'000;
inline constexpr std::int64_t kLongestCallPause = 4'000'000;

// --- Long runs ---

// A run of this length counts as long. The worker then checks the watch before each run; for
// shorter runs, these checks cost more than they save.
inline constexpr std::int64_t kLongRun = 200'000;
// A run of this length is certainly long unless the thread was preempted; one system call shows
// whether it was.
inline constexpr std::int64_t kCertainlyLongRun = 1'000'000;
// For runs between these two lengths, the worker reads its processor time only once in this many
// cases. A system call in each case would cost more than it saves.
inline constexpr unsigned kSuspicionsPerQuestion = 8;
// For this long after a long run, a worker assumes that more long runs follow, and wakes sleeping
// workers sooner.
inline constexpr std::int64_t kLongRunMemory = 100'000'000;

// --- Searches: a worker without work steals ---

// The time that a worker searches before it sleeps: several times the cost of waking a sleeping
// thread. With a longer time, searches waste processor time; with a shorter time, the worker is
// often woken just after it fell asleep.
inline constexpr std::int64_t kSearchTime = 30'000;
// A thief checks a worker twice, this far apart, to distinguish waiting work from work in progress.
// With 1 us, two workers took up to 2.5 times as long as one worker for `weft_workloads W1`.
inline constexpr std::int64_t kBetweenLooks = 5'000;
// A thief leaves work to an owner that will reach the work within this time, because a move costs
// more. With 5 us, a fiber of `weft_workloads W1 --workers 2` took 35 ns instead of 23 ns.
inline constexpr std::int64_t kWorthStealing = 20'000;
// A check of another worker shows nothing about its present pace if the check is older than this.
inline constexpr std::int64_t kLookIsOld = 1'000'000;

// --- Visits: a worker with work looks at others ---

// A worker makes visits at most once in this time, and to at most this many workers: a visit reads
// cache lines that their owners write.
inline constexpr std::int64_t kVisitPeriod = 200'000;
inline constexpr std::uint32_t kVisited = 4;
// A visitor takes over no fibers that will run within this time: a move costs both workers 18 us.
inline constexpr std::int64_t kWorthVisiting = 50'000;
// A visitor takes at most this many fibers, which bounds how long its own fibers wait.
inline constexpr std::int64_t kMostRelieved = 1024;
// A fiber counts as computing if it has used this much processor time since a visitor found its run
// to be long.
inline constexpr std::int64_t kComputes = 100'000;
// A visitor reads a thread's state at most once in this time, because the read takes 5 us.
inline constexpr std::int64_t kAskPeriod = 2'000'000;

// --- Timers of other workers ---

// An idle worker runs a timer of an awake worker that has been due for this long; a visitor does so
// only if the timer's owner is stuck. With a shorter time, workers take timers from an owner that
// is about to run them.
inline constexpr std::int64_t kOverdue = 200'000;
// A visitor runs a timer that has been due for this long, even if its owner is not stuck.
inline constexpr std::int64_t kLongOverdue = 2'000'000;

// --- Sleep ---

// A worker sleeps this long before it frees the memory of unused stacks and records. With a shorter
// time, the next burst of fibers causes page faults.
inline constexpr std::int64_t kTrimDelay = 100'000'000;
// In a runtime without a monitor, a worker sleeps at most this long while another worker is awake.
// So fibers in the queue of the awake worker may wait this long.
inline constexpr std::int64_t kUnmonitored = 1'000'000;

// --- The monitor ---

// The periods between samples: the shortest while fibers run for a long time, the longest while
// each sample finds all workers asleep. A sample reads cache lines of all workers; the monitor
// finds a stuck worker up to a period late. Under light load the samples are a large share of the
// runtime's cost. Each takes some 17 us, because the monitor's thread has to be woken.
inline constexpr std::int64_t kShortestSamplePeriod = 1'000'000;
inline constexpr std::int64_t kLongSamplePeriod = 10'000'000;
inline constexpr std::int64_t kLongestSamplePeriod = 40'000'000;
// The sample period stays short for this long after a sample has found a long run.
inline constexpr std::int64_t kAlert = 200'000'000;
// After this time, a call that blocks its worker no longer keeps the period short, because a spare
// replaces the worker. A sample of a blocked worker reads a kernel file, for some 9 us.
inline constexpr std::int64_t kLongBlock = 1'000'000'000;
// The monitor sleeps once all workers have slept for this long. With a shorter time, workers that
// wake up make more system calls to wake the monitor.
inline constexpr std::int64_t kMonitorRest = 500'000'000;

// The time between the beginnings of two censuses, and the number of slabs of 64 KiB that a step
// visits. With a longer period, dumps show less exactly how long fibers have been parked. With more
// slabs, a step takes longer than a third of a millisecond, in which the monitor does nothing else.
inline constexpr std::int64_t kCensusPeriod = 10'000'000'000;
inline constexpr std::size_t kCensusSlabs = 16;

// Once in this time, the monitor searches for fibers that wait for each other, unless more than
// kMostWaitsWatched fibers wait for other fibers. It reads the stacks of these fibers, which takes
// some microseconds per fiber.
inline constexpr std::int64_t kCyclePeriod = 60'000'000'000;
inline constexpr std::size_t kMostWaitsWatched = 5'000;

// --- The search for deadlocks ---

// The pause before the first search, and the longest pause: each search wakes a worker of an idle
// process.
inline constexpr std::int64_t kFirstDeadlockPause = 100'000'000;
inline constexpr std::int64_t kLongestDeadlockPause = 60'000'000'000;

// --- Memory ---

// Entries of the shared stores that were unused for a whole period are freed in the next period.
inline constexpr std::int64_t kDecayPeriod = 500'000'000;
// The amounts freed in one step, which takes a fraction of a millisecond; a worker looks for work
// between two steps.
inline constexpr unsigned kTrimmedStackChains = 8;
inline constexpr unsigned kTrimmedFiberChains = 16;
// The largest amounts freed in one step when much is due; 4096 stacks take some milliseconds.
inline constexpr std::int64_t kMostStackChains = 128;
inline constexpr std::int64_t kMostFiberChains = 256;

// The time between two comparisons of the process's memory with its goal, unless the memory grows
// fast. A longer time delays the reaction to bursts; a shorter time adds file reads of 2 us each.
inline constexpr std::int64_t kMemoryLook = 10'000'000;

// --- Fibers without a stack ---

// The minimum pause between two requests for stacks that may fail, except for pinned fibers.
inline constexpr std::int64_t kStackRequestPause = 10'000'000;
// The shortest time between two alarms, which make sleepers empty their stores of stacks. For twice
// this time after an alarm, workers that fall asleep also empty their stores.
inline constexpr std::int64_t kStackAlarmPeriod = 100'000'000;
// If no fiber has run for this long, the shortage is reported as a deadlock. With a shorter time,
// slow programs would be reported. After kShortageEnds without a shortage, the next shortage is
// new.
inline constexpr std::int64_t kShortagePatience = 5'000'000'000;
inline constexpr std::int64_t kShortageEnds = 1'000'000'000;
// The minimum pause between two lines about a shortage on stderr.
inline constexpr std::int64_t kShortageLinePeriod = 10'000'000'000;

// --- Samples of how long fibers wait and run ---

// A sample begins this long after the end of the previous sample. With a shorter pause, workers
// follow fibers for more of the time, which costs a call at each switch.
inline constexpr std::int64_t kSamplePause = 1'000'000;
// After this time the sampler abandons a fiber that has not run, and may follow another fiber.
inline constexpr std::int64_t kSamplePatience = 10'000'000'000;

// --- Blocking calls ---

// An idle helper thread ends after this long. With a shorter time, occasional calls start threads.
inline constexpr std::int64_t kHelperIdleTime = 10'000'000'000;

}  // namespace weft::scheduler::tuning
