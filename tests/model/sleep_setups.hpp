// The setups of sleep_model.cpp, and the ways in which it breaks the protocol.
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

// The setup of a test.
enum Kind {
  kUntimed,
  kFibersMeet,  // Two of them need two workers at the same time.
  // One computes until the fiber has run that an event of a descriptor wakes, which it has just
  // registered, or which was there from the start;
  kKernel,
  kOldDescriptor,
  kClock,  // or that a timer wakes.
  // Nothing computes: each worker that has run a fiber sleeps. The first one has set a timer;
  kClockOfSleeper,
  kTimerReplaced,       // in place of another worker's, which it has cancelled;
  kDescriptorReplaced,  // or it has closed the last descriptor, and begun to watch another;
  kPlainThread,         // or a plain thread begins to watch a descriptor;
  kLeaver,              // or a worker takes part no more, while a descriptor is watched;
  kClockOfLeaver,       // or one that has set a timer takes part no more.
  // The first one has set a timer that wakes a fiber pinned to it, and any worker may run it.
  kPinned,
};

}  // namespace weft::model::sleep
