// A signal that makes the process list its fibers and continue.
#pragma once

namespace weft::runtime {

// The signal that the environment's WEFT_DUMP_SIGNAL names, or `otherwise`. Throws
// std::invalid_argument.
[[nodiscard]] int dump_signal_or(int otherwise);

// While one lives, `number` makes a thread of its own write all fibers of the process to stderr.
// A value that is queued with it lets that thread write a profile to a file instead: the value is
// the length in seconds. The handler does no more than write to an eventfd; what was there before
// it is put back at the end, unless somebody has replaced it meanwhile. Several runtimes may ask
// for the same signal, and share the handler and the thread. From any thread, though not from a
// fiber: it waits for the thread.
class DumpSignal {
 public:
  // Throws std::invalid_argument if another object lives with another number, and for a signal that
  // cannot be handled or that reports a fault; std::system_error if the system refuses.
  explicit DumpSignal(int number);
  ~DumpSignal();
  DumpSignal(const DumpSignal&) = delete;
  DumpSignal& operator=(const DumpSignal&) = delete;
};

}  // namespace weft::runtime
