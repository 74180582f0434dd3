// Profiles that a signal requests.
#pragma once

#include <chrono>
#include <optional>
#include <thread>
#include <weft/context.hpp>

namespace weft::runtime {

// Records on a separate thread, so that dumps remain possible meanwhile. Owner: the thread that
// reads the requests. The destructor ends a recording early, without a file.
class SignalProfile {
 public:
  SignalProfile() = default;
  ~SignalProfile() { end(); }
  SignalProfile(const SignalProfile&) = delete;
  SignalProfile& operator=(const SignalProfile&) = delete;

  // Reports on stderr where the profile is, or why there is none. A recording in progress continues
  // undisturbed.
  void begin(std::chrono::nanoseconds duration) noexcept;

 private:
  void end() noexcept;

  detail::Atomic<bool> is_recording_{false};  // Relaxed: the thread is joined before it is used.
  unsigned count_ = 0;
  std::optional<Context> context_;  // The scope of the recording.
  std::thread thread_;
};

}  // namespace weft::runtime
