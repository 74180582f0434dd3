// Contains the code that all recordings of a page share.
#pragma once

#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/profile.hpp>
#include <weft/result.hpp>

#include "runtime/profile_stacks.hpp"

namespace weft::runtime {

// Parks the caller until the given time. Returns false if the wait ended early.
using Wait = std::function<bool(Deadline)>;
// Waits with the ambient limits of the caller.
[[nodiscard]] bool sleep_until_end(Deadline end);

// Writes a profile in a format: as_folded() or as_pprof().
using Write = std::string (*)(const Profile&);

// The right to make one kind of recording, which one caller in the process has at a time. `taken`
// is the process in which it is taken, or 0. In the child of a fork, no caller exists that would
// release the right.
// Order
//   [turn]  the destructor stores 0 (release) -> the next constructor exchanges (acquire): the
//           previous recording has been read. Relaxed elsewhere: a process compares the value only
//           with its own number.
class RecordingTurn {
 public:
  explicit RecordingTurn(detail::Atomic<int>& taken) noexcept : taken_(taken) {
    const int process = ::getpid();
    int seen = taken.load(detail::relaxed);
    is_mine_ = seen != process && taken.compare_exchange_strong(seen, process, detail::acquire,
                                                                detail::relaxed);  // [turn]
  }
  ~RecordingTurn() {
    if (is_mine_) taken_.store(0, detail::release);  // [turn]
  }
  RecordingTurn(const RecordingTurn&) = delete;
  RecordingTurn& operator=(const RecordingTurn&) = delete;
  [[nodiscard]] bool is_mine() const noexcept { return is_mine_; }

 private:
  detail::Atomic<int>& taken_;
  bool is_mine_ = false;
};

// Does what profile::processor() does, with the caller's own way to wait.
[[nodiscard]] Result<std::string> record_processor(const profile::Options& options,
                                                   const Wait& wait);
// Does the same with a format of the caller's choice. A program that chooses one format links no
// other format.
[[nodiscard]] Result<std::string> record_processor(std::chrono::nanoseconds duration,
                                                   const Wait& wait, Write write);
// Do the same for profile::contention() and profile::blocked().
[[nodiscard]] Result<std::string> record_contention(const profile::Options& options,
                                                    const Wait& wait);
[[nodiscard]] Result<std::string> record_blocked(const profile::Options& options, const Wait& wait);

}  // namespace weft::runtime
