// Lists the setups of sleep_model.cpp, and the ways in which the model breaks the protocol.
#pragma once

namespace weft::model::sleep {

enum Fault {
  kNone,
  kAdderWithoutFence,
  kSearcherLooksAway,
  kNeverEndsSearch,
  kWatchNotMinded,
  kTimerUntoldBySleeper,
  kDescriptorUntold,
  kSourceIgnored,
  kToldIsForgotten,
  kLeavesInSilence,
  kTimerUntoldByLeaver,
  kPinnedOverlooked,
};

// Selects the setup of a test.
enum Kind {
  kUntimed,
  kFibersMeet,  // Two fibers need two workers at the same time.
  // One fiber computes until another fiber has run, which an event of a descriptor wakes. The
  // descriptor is new, or was registered from the start;
  kKernel,
  kOldDescriptor,
  kClock,  // or that a timer wakes.
  // No fiber computes: each worker that has run a fiber sleeps. The first worker has set a timer;
  kClockOfSleeper,
  kTimerReplaced,       // in place of another worker's, which it has cancelled;
  kDescriptorReplaced,  // or it has closed the last descriptor, and begun to watch another;
  kPlainThread,         // or a plain thread begins to watch a descriptor;
  kLeaver,              // or a worker leaves while a descriptor is watched;
  kClockOfLeaver,       // or a worker that has set a timer leaves.
  // The first worker has set a timer that wakes a fiber pinned to it; any worker may run the timer.
  kPinned,
};

}  // namespace weft::model::sleep
