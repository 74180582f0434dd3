// What the recordings of a page have in common.
#pragma once

#include <functional>
#include <string>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/profile.hpp>
#include <weft/result.hpp>

namespace weft::observe {

// Parks the caller until the moment. Returns false if something ended the wait before.
using Wait = std::function<bool(Deadline)>;

// The right to make one kind of recording: one caller in the process has it at a time.
// Order
//   [turn]  the destructor stores false (release) -> the next one exchanges (acquire): the
//           recording before has been read.
class RecordingTurn {
 public:
  explicit RecordingTurn(detail::Atomic<bool>& taken) noexcept
      : taken_(taken), is_mine_(!taken.exchange(true, detail::acquire)) {}  // [turn]
  ~RecordingTurn() {
    if (is_mine_) taken_.store(false, detail::release);  // [turn]
  }
  RecordingTurn(const RecordingTurn&) = delete;
  RecordingTurn& operator=(const RecordingTurn&) = delete;
  [[nodiscard]] bool is_mine() const noexcept { return is_mine_; }

 private:
  detail::Atomic<bool>& taken_;
  const bool is_mine_;
};

// Does what profile::processor() does, with a wait of the caller's.
[[nodiscard]] Result<std::string> record_processor(const profile::Options& options,
                                                   const Wait& wait);
// The same for profile::contention() and profile::blocked().
[[nodiscard]] Result<std::string> record_contention(const profile::Options& options,
                                                    const Wait& wait);
[[nodiscard]] Result<std::string> record_blocked(const profile::Options& options, const Wait& wait);

}  // namespace weft::observe
