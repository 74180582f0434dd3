// The constants of the scheduler's policy. Times are nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>

// Each entry describes the cost of a larger and of a smaller number, and the measurement where
// there is one. docs/decisions/0014 and 0017 have the tables. Sizes on which an algorithm relies,
// such as that of a ring, are with the algorithm.
namespace weft::scheduler::tuning {

// --- Looks of a worker with work ---

// After at most this many decisions, a worker looks at what it would otherwise never reach: the
// shared queue, its oldest new fibers, timers and descriptors. More: these wait longer; fewer:
// fibers pay for more looks. A prime, so that it does not fall into step with a program's period.
inline constexpr std::uint32_t kMostDecisions = 61;
// Looks should be no further apart than this, which bounds the wait of everything that a look
// finds.
inline constexpr std::int64_t kLookPeriod = 200'000;
// A busy worker looks at the descriptors no more often than this: each look is a system call.
inline constexpr std::int64_t kPollInterval = 20'000;
// The oldest new fibers get a turn this often. More often: more subtrees are begun early. At each
// look, skynet was half as slow again, and peaked at 55 MB.
inline constexpr std::int64_t kReachPeriod = 200'000;
// For each this many, one more of them has a turn. A smaller number costs as much as a shorter
// period.
inline constexpr std::size_t kNewFibersPerReached = 512;
// This many at most have their turn. Without a bound, most of a million sleeping fibers were parked
// at once: 3.5 GB, and eight times the time.
inline constexpr std::size_t kMostReached = 8;
// An empty ring is filled with this many waiting fibers. More: the prefetched parts of their stacks
// have left the innermost cache when they run; fewer: the list is locked more often.
inline constexpr std::size_t kFetched = 16;

// --- Calls for help ---

// A fiber may wait this long while a processor is idle; this is also the distance of looks while a
// worker sleeps. Less: workers wake each other for fibers that would soon have run; a wake costs
// both some 10 us.
inline constexpr std::int64_t kPatience = 50'000;
// Fibers wait this long if all usable processors have an awake worker: another one would only share
// a processor.
inline constexpr std::int64_t kPatienceWhenCrowded = 1'000'000;
// The first and the longest pause after a call that was a bet. A longer one delays help that is
// needed, a shorter one repeats a lost bet.
inline constexpr std::int64_t kShortestCallPause = 100'000;
inline constexpr std::int64_t kLongestCallPause = 4'000'000;

// --- Long runs ---

// For shorter runs it does not pay to let another worker watch meanwhile.
inline constexpr std::int64_t kLongRun = 200'000;
// A run of this length is long unless the thread was preempted; one system call shows that.
inline constexpr std::int64_t kCertainlyLongRun = 1'000'000;
// For runs in between, the kernel is asked for the processor time at one in this many suspicions: a
// system call for each would cost more than the answer is worth.
inline constexpr unsigned kSuspicionsPerQuestion = 8;
// How long a worker expects more long runs after one; meanwhile it wakes sleepers sooner.
inline constexpr std::int64_t kLongRunMemory = 100'000'000;

// --- Searches: a worker without work steals ---

// A searcher looks this long before it sleeps: several times the cost of waking a sleeping thread.
// Longer: it wastes processor time; shorter: it sleeps and is woken at once.
inline constexpr std::int64_t kSearchTime = 30'000;
// Two looks at a victim must be this far apart to tell waiting work from work in progress. With
// 1 us, two workers ran `weft_workloads W1` up to 2.5 times slower than one did.
inline constexpr std::int64_t kBetweenLooks = 5'000;
// Work that its owner will reach within this time is left to it, because moving it costs more. With
// 5 us, a fiber of `weft_workloads W1 --workers 2` took 35 ns instead of 23 ns.
inline constexpr std::int64_t kWorthStealing = 20'000;
// A look at a victim this long ago shows nothing about its present pace.
inline constexpr std::int64_t kLookIsOld = 1'000'000;

// --- Visits: a worker with work looks at others ---

// A worker visits other workers no more often than this, and this many of them: a visit reads cache
// lines that their owners write.
inline constexpr std::int64_t kVisitPeriod = 200'000;
inline constexpr std::uint32_t kVisited = 4;
// It takes over no fibers that will run within this time: a move costs both workers 18 us.
inline constexpr std::int64_t kWorthVisiting = 50'000;
// It takes at most this many, which bounds how long its own fibers wait for the visit.
inline constexpr std::int64_t kMostRelieved = 1024;
// A fiber that has used this much processor time since its run was found to be long still computes.
inline constexpr std::int64_t kComputes = 100'000;
// Asking the kernel what a thread waits for takes 5 us, so a visitor does so no more often than
// this.
inline constexpr std::int64_t kAskPeriod = 2'000'000;

// --- Timers of other workers ---

// An idle worker runs a timer that its owner has not run for this long; a busy worker does so only
// for a stuck owner. Less: other workers take timers from a worker that is about to run them.
inline constexpr std::int64_t kOverdue = 200'000;
// A visitor runs a timer that its owner has not run for this long, stuck or not.
inline constexpr std::int64_t kLongOverdue = 2'000'000;

// --- Sleep ---

// How long a worker sleeps before it frees the memory of unused stacks and records. Less: the next
// burst of fibers pays for page faults.
inline constexpr std::int64_t kTrimDelay = 100'000'000;
// How long a worker sleeps while another one is awake, in a runtime without a monitor: fibers that
// the other one queues and does not run wait that long.
inline constexpr std::int64_t kUnmonitored = 1'000'000;

// --- The monitor ---

// The periods of its samples: the shortest one while fibers run for long, the longest one while
// each sample finds all workers asleep. A sample reads the lines of all workers, and a stuck worker
// is found a period later. Under light load the samples are a large share of the cost: each one
// takes some 17 us, as its thread has to be woken.
inline constexpr std::int64_t kShortestSamplePeriod = 1'000'000;
inline constexpr std::int64_t kLongSamplePeriod = 10'000'000;
inline constexpr std::int64_t kLongestSamplePeriod = 40'000'000;
// How long the period stays short after a long run was seen.
inline constexpr std::int64_t kAlert = 200'000'000;
// A call that has blocked its worker for longer asks for no frequent samples any more: spares
// replace the worker. A sample of it reads a file of the kernel, some 9 us.
inline constexpr std::int64_t kLongBlock = 1'000'000'000;
// How long all workers must have slept before the monitor sleeps: the next worker that wakes up
// wakes it, by a system call.
inline constexpr std::int64_t kMonitorRest = 500'000'000;

// The pause between the beginnings of two censuses, and how many slabs of 64 KiB a step of one
// visits. A period more: the age of a park that a dump shows is less exact. More slabs: a step,
// during which the monitor does nothing else, takes longer than a third of a millisecond.
inline constexpr std::int64_t kCensusPeriod = 10'000'000'000;
inline constexpr std::size_t kCensusSlabs = 16;

// The monitor looks this often for fibers that wait for each other, and not while this many wait
// for others: it reads the stack of each, and does nothing else for some microseconds a fiber.
inline constexpr std::int64_t kCyclePeriod = 60'000'000'000;
inline constexpr std::size_t kMostWaitsWatched = 5'000;

// --- The search for deadlocks ---

// The pauses before the first search, and the longest one: each search wakes a worker of an idle
// process.
inline constexpr std::int64_t kFirstDeadlockPause = 100'000'000;
inline constexpr std::int64_t kLongestDeadlockPause = 60'000'000'000;

// --- Memory ---

// Entries of the shared stores that were unused for a whole period are freed in the next one.
inline constexpr std::int64_t kDecayPeriod = 500'000'000;
// The amount freed in one step, which takes a fraction of a millisecond: a worker looks for work in
// between.
inline constexpr unsigned kTrimmedStackChains = 8;
inline constexpr unsigned kTrimmedFiberChains = 16;
// The maximum that must be freed at once to keep up: 4096 stacks, some milliseconds.
inline constexpr std::int64_t kMostStackChains = 128;
inline constexpr std::int64_t kMostFiberChains = 256;

// How often the memory of the process is compared with its goal, unless it grows fast.
// Less often: a burst is noticed later; more often: each look reads a file in 2 us.
inline constexpr std::int64_t kMemoryLook = 10'000'000;

// --- Fibers without a stack ---

// The minimum pause between two requests to the system: each may be a call that fails.
inline constexpr std::int64_t kStackRequestPause = 10'000'000;
// The shortest time between two requests to sleepers to empty their stores of stacks. They do so
// for twice as long.
inline constexpr std::int64_t kStackAlarmPeriod = 100'000'000;
// If no fiber has run for this long, the shortage is reported as a deadlock. Less: slow programs
// would be reported, too. A shortage after kShortageEnds without one is a new one.
inline constexpr std::int64_t kShortagePatience = 5'000'000'000;
inline constexpr std::int64_t kShortageEnds = 1'000'000'000;
// The minimum pause between two lines on stderr.
inline constexpr std::int64_t kShortageLinePeriod = 10'000'000'000;

// --- Samples of how long fibers wait and run ---

// A sample begins this long after the end of the previous one. Less: workers follow a fiber more of
// the time, which costs a call at each switch.
inline constexpr std::int64_t kSamplePause = 1'000'000;
// A fiber that has not run after this long is no longer followed, if there are others to follow.
inline constexpr std::int64_t kSamplePatience = 10'000'000'000;

// --- Blocking calls ---

// An idle helper thread ends after this long. Less: occasional calls start threads.
inline constexpr std::int64_t kHelperIdleTime = 10'000'000'000;

}  // namespace weft::scheduler::tuning
