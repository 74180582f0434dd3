// The end of a program by a signal, as a stop token.
#pragma once

#include <csignal>
#include <initializer_list>
#include <stop_token>
#include <weft/detail/atomic.hpp>
#include <weft/io.hpp>
#include <weft/wait_group.hpp>

namespace weft {

// Requests a stop when the process gets one of some signals, as Go's signal.NotifyContext ends a
// context. A server takes the token in its options:
//
//   weft::StopOnSignal stop;  // Ctrl-C, or a container that ends.
//   weft::http::Server server(handler, {.grace = 5s, .stop = stop.get_token()});
//   const std::error_code error = server.serve(listener);
//
// The first signal requests the stop. From then on, and when the object is gone, the signals have
// the effect again that they had before: a second Ctrl-C ends a program whose end takes too long.
// As for SignalSet, a signal belongs to one object at a time, and some thread must not block it.
// A fiber waits for the signal; it counts as live until the object is gone. Call it from fibers and
// plain threads; it parks, throws and synchronizes where it says so.
// Order
//   [signal]  the fiber stores signal_ (release) -> signal() loads it (acquire).
class StopOnSignal {
 public:
  // Never parks. Throws std::system_error as io::SignalSet::watch() fails, and as go().
  explicit StopOnSignal(std::initializer_list<int> signals = {SIGINT, SIGTERM});
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  // Parks until its fiber has ended.
  ~StopOnSignal();

  // Never parks. The request synchronizes with what sees it.
  [[nodiscard]] std::stop_token get_token() const noexcept { return stop_.get_token(); }
  // The signal that has come; 0: none yet. Never parks.
  [[nodiscard]] int signal() const noexcept {
    return signal_.load(detail::acquire);  // [signal]
  }

 private:
  void wait() noexcept;

  io::SignalSet signals_;
  std::stop_source stop_;
  std::stop_source end_;  // Ends the fiber.
  detail::Atomic<int> signal_{0};
  WaitGroup fiber_;
};

}  // namespace weft
