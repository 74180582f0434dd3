// A signal that makes the process list its fibers and continue.
#pragma once

namespace weft::runtime {

// The signal that the environment's WEFT_DUMP_SIGNAL names, or `otherwise`. Throws
// std::invalid_argument.
[[nodiscard]] int dump_signal_or(int otherwise);

// While an object lives, `number` makes a separate thread write all fibers of the process to
// stderr. A value that is queued with the signal makes that thread write a profile to a file
// instead: the value is the length in seconds. The handler only writes to an eventfd. The
// destructor restores the previous handler, unless other code has replaced this handler meanwhile.
// Several runtimes may request the same signal; they share the handler and the thread. Plain
// threads may use it, but fibers may not: the destructor may wait for the thread.
class DumpSignal {
 public:
  // Throws std::invalid_argument if another object lives with another number, or if the signal
  // cannot be handled or reports a fault. Throws std::system_error if the system refuses.
  explicit DumpSignal(int number);
  ~DumpSignal();
  DumpSignal(const DumpSignal&) = delete;
  DumpSignal& operator=(const DumpSignal&) = delete;
};

}  // namespace weft::runtime
