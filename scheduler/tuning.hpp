// The numbers of the scheduler's policy. Times are nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>

// Each entry tells what a larger number and a smaller one cost, and the measurement behind it where
// there is one. docs/decisions/0014 and 0017 have the tables. Sizes that an algorithm relies on,
// such as that of a ring, are with the algorithm.
namespace weft::scheduler::tuning {

// --- Looks of a worker with work ---

// After this many decisions at most, a worker looks at what it would otherwise never get to: the
// shared queue, its oldest new fibers, timers and descriptors. More: these wait longer; fewer:
// fibers pay for more looks. A prime, so that it does not fall into step with a program's period.
inline constexpr std::uint32_t kMostDecisions = 61;
// Looks should be no further apart than this, which bounds the wait of all that a look finds.
inline constexpr std::int64_t kLookPeriod = 200'000;
// A busy worker looks at the descriptors no more often than this: each look is a system call.
inline constexpr std::int64_t kPollInterval = 20'000;
// The oldest new fibers get a turn this often. More often: more subtrees are begun early. At each
// look, skynet was half as slow again, and peaked at 55 MB.
inline constexpr std::int64_t kReachPeriod = 200'000;
// One more of them has a turn for each this many. A smaller number costs as a shorter period does.
inline constexpr std::size_t kNewFibersPerReached = 512;
// This many at most have their turn. Without a bound, most of a million fibers that sleep were
// parked at once: 3.5 GB, and eight times the time.
inline constexpr std::size_t kMostReached = 8;
// An empty ring is filled with this many waiting fibers. More: what is fetched of their stacks has
// left the innermost cache when they run; fewer: the list is locked more often.
inline constexpr std::size_t kFetched = 16;

// --- Calls for help ---

// A fiber may wait this long while a processor is idle; and looks are this far apart while a worker
// sleeps. Less: workers wake each other for what would soon have run; a wake costs both some 10 us.
inline constexpr std::int64_t kPatience = 50'000;
// Fibers wait this long if all usable processors have a worker that is awake: one more would only
// take turns with them.
inline constexpr std::int64_t kPatienceWhenCrowded = 1'000'000;
// The first and the longest pause after a call that was a bet. A longer one delays help that is
// needed, a shorter one repeats a lost bet.
inline constexpr std::int64_t kShortestCallPause = 100'000;
inline constexpr std::int64_t kLongestCallPause = 4'000'000;

// --- Long runs ---

// Below this it does not pay to have another worker watch meanwhile.
inline constexpr std::int64_t kLongRun = 200'000;
// From here on a run is long unless the thread was preempted, which is one system call to ask.
inline constexpr std::int64_t kCertainlyLongRun = 1'000'000;
// In between, the kernel is asked for the processor time at one in this many suspicions: a question
// at each costs more than the answer is worth.
inline constexpr unsigned kSuspicionsPerQuestion = 8;
// How long a long run is remembered: meanwhile sleepers are woken for less.
inline constexpr std::int64_t kLongRunMemory = 100'000'000;

// --- Searches: a worker without work steals ---

// A searcher looks this long before it sleeps: several times what a wake-up of a sleeping thread
// costs. Longer: it uses a processor for nothing; shorter: it sleeps and is woken at once.
inline constexpr std::int64_t kSearchTime = 30'000;
// Two looks at a victim must be this far apart to tell waiting work from work in progress. With
// 1 us, two workers ran `weft_workloads W1` up to 2.5 times slower than one did.
inline constexpr std::int64_t kBetweenLooks = 5'000;
// Work that its owner will have reached within this time is left to it: moving it costs more. With
// 5 us, a fiber of `weft_workloads W1 --workers 2` took 35 ns, where it takes 23 ns.
inline constexpr std::int64_t kWorthStealing = 20'000;
// A look at a victim this long ago shows nothing about its pace now.
inline constexpr std::int64_t kLookIsOld = 1'000'000;

// --- Visits: a worker with work looks at others ---

// A worker visits others no more often than this, and this many of them: a visit reads cache lines
// that their owners write.
inline constexpr std::int64_t kVisitPeriod = 200'000;
inline constexpr std::uint32_t kVisited = 4;
// It takes over no fibers that have their turn within this time: a move costs both workers 18 us.
inline constexpr std::int64_t kWorthVisiting = 50'000;
// It takes this many at most, which bounds how long its own fibers wait for the visit.
inline constexpr std::int64_t kMostRelieved = 1024;
// A fiber that has used this much of a processor since it was seen to run for long still computes.
inline constexpr std::int64_t kComputes = 100'000;
// It takes 5 us to ask the kernel what a thread waits for, so a visitor does so no more often.
inline constexpr std::int64_t kAskPeriod = 2'000'000;

// --- Timers of other workers ---

// An idle worker runs a timer that its owner has not looked at for this long; a busy one takes it
// from a stuck worker only. Less: workers that are about to run a timer lose it to others.
inline constexpr std::int64_t kOverdue = 200'000;
// A visitor runs a timer that its owner has not got to for this long, stuck or not.
inline constexpr std::int64_t kLongOverdue = 2'000'000;

// --- Sleep ---

// How long a worker sleeps before it gives the memory of unused stacks and records back. Less: the
// next burst of fibers pays for page faults.
inline constexpr std::int64_t kTrimDelay = 100'000'000;
// How long a worker sleeps while another one is awake, in a runtime without a monitor: what the
// other one queues and does not run waits that long.
inline constexpr std::int64_t kUnmonitored = 1'000'000;

// --- The monitor ---

// The periods of its samples: the shortest one while fibers run for long, the longest one while
// each sample finds all workers asleep. A sample reads the lines of all workers, and a stuck worker
// is found a period later. Under light load the samples are a large share of the cost: each one
// takes some 17 us, as its thread has to be woken.
inline constexpr std::int64_t kShortestSamplePeriod = 1'000'000;
inline constexpr std::int64_t kLongSamplePeriod = 10'000'000;
inline constexpr std::int64_t kLongestSamplePeriod = 40'000'000;
// How long the period stays short after a fiber was seen that runs for long.
inline constexpr std::int64_t kAlert = 200'000'000;
// How long all workers must have slept before the monitor does: the next one that rises wakes it,
// by a system call.
inline constexpr std::int64_t kMonitorRest = 500'000'000;

// The pause between the beginnings of two censuses, and how many slabs of 64 KiB a step of one
// visits. A period more: the age of a park that a dump shows is less exact. More slabs: a step,
// during which the monitor does nothing else, takes longer than a third of a millisecond.
inline constexpr std::int64_t kCensusPeriod = 10'000'000'000;
inline constexpr std::size_t kCensusSlabs = 16;

// --- The search for deadlocks ---

// The pauses before the first look, and the longest one: each look wakes a worker of a process that
// is idle.
inline constexpr std::int64_t kFirstDeadlockPause = 100'000'000;
inline constexpr std::int64_t kLongestDeadlockPause = 60'000'000'000;

// --- Memory ---

// What has lain unused in the shared stores for a whole period is given back in the next one.
inline constexpr std::int64_t kDecayPeriod = 500'000'000;
// Given back in one step, a fraction of a millisecond's worth: a worker looks for work in between.
inline constexpr unsigned kTrimmedStackChains = 8;
inline constexpr unsigned kTrimmedFiberChains = 16;
// The most at once of what has to be given back in time: 4096 stacks, some milliseconds.
inline constexpr std::int64_t kMostStackChains = 128;
inline constexpr std::int64_t kMostFiberChains = 256;

// --- Fibers without a stack ---

// A request to the system follows another one after this long: each may be a call that fails.
inline constexpr std::int64_t kStackRequestPause = 10'000'000;
// Sleepers are unparked for their stacks no more often than this; they empty their stores for twice
// as long.
inline constexpr std::int64_t kStackAlarmPeriod = 100'000'000;
// If no fiber has run for this long, the shortage is reported as a deadlock. Less: what is slow
// would be reported, too. A shortage after kShortageEnds without one is a new one.
inline constexpr std::int64_t kShortagePatience = 5'000'000'000;
inline constexpr std::int64_t kShortageEnds = 1'000'000'000;
// A line on stderr follows another one after this long at the earliest.
inline constexpr std::int64_t kShortageLinePeriod = 10'000'000'000;

// --- Samples of how long fibers wait and run ---

// A sample begins this long after the end of the one before. Less: workers
// follow a fiber more of the time, which costs a call at each switch.
inline constexpr std::int64_t kSamplePause = 1'000'000;
// A fiber that has not run after this long is followed no more, if there are others to follow.
inline constexpr std::int64_t kSamplePatience = 10'000'000'000;

// --- Blocking calls ---

// An idle helper thread ends after this long. Less: calls that come now and then start threads.
inline constexpr std::int64_t kHelperIdleTime = 10'000'000'000;

}  // namespace weft::scheduler::tuning
