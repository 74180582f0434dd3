// Turns a signal that would end the program into a stop request.
#pragma once

#include <csignal>
#include <initializer_list>
#include <stop_token>
#include <weft/detail/atomic.hpp>
#include <weft/io.hpp>
#include <weft/wait_group.hpp>

namespace weft {

// Requests a stop when the process receives one of the given signals, like Go's
// signal.NotifyContext. A server takes the token in its options:
//
//   weft::StopOnSignal stop;  // Ctrl-C, or a container that ends.
//   weft::http::Server server(handler, {.grace = 5s, .stop = stop.get_token()});
//   const std::error_code error = server.serve(listener);
//
// The first signal requests the stop. The signals then have their former effect again, as after the
// destructor, so a second Ctrl-C ends a program whose shutdown takes too long. Only one object may
// use a signal at a time. At least one thread must leave the signal unblocked, as io::SignalSet
// also requires. The object starts a fiber that waits for the signal.
// Context: fibers and plain threads; only the destructor parks.
// Ordering: the receipt of a signal synchronizes with signal(), and precedes the stop request.
// Order
//   [signal]  the fiber stores signal_ (release) -> signal() loads it (acquire): its caller then
//             sees everything that happened before the fiber received the signal.
class StopOnSignal {
 public:
  // Throws: std::system_error with an error of io::SignalSet::watch(), and what go() throws.
  explicit StopOnSignal(std::initializer_list<int> signals = {SIGINT, SIGTERM});
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  // Waits until the object's fiber has ended.
  ~StopOnSignal();

  // Returns the token of the stop request.
  [[nodiscard]] std::stop_token get_token() const noexcept { return stop_.get_token(); }
  // Returns the signal that requested the stop, or 0 if none has arrived.
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
