// A callback for a stop request, safe for fibers.
#pragma once

#include <optional>
#include <stop_token>
#include <utility>

namespace weft::detail {

// A std::stop_callback that may be removed on another thread than it was added on.
// Its removal compares the calling thread with the one that requests the stop, to know whether it
// has to wait for the callback's end. Compilers remember which thread they are on over a switch;
// with the answer from before, the removal might not wait, and the callback use what is gone. So
// it is a function of its own, into which no such memory reaches.
template <class Callback>
class StopRegistration {
 public:
  StopRegistration() noexcept = default;
  ~StopRegistration() { remove(); }
  StopRegistration(const StopRegistration&) = delete;
  StopRegistration& operator=(const StopRegistration&) = delete;

  // Calls `callback` when a stop is requested of `token`; at once, if one has been.
  void add(const std::stop_token& token, Callback callback) noexcept {
    remove();
    callback_.emplace(token, std::move(callback));
  }
  // Waits for the end of a callback that is under way.
  [[gnu::noinline]] void remove() noexcept { callback_.reset(); }

 private:
  std::optional<std::stop_callback<Callback>> callback_;
};

// A callback that passes the request on.
struct RequestStop {
  std::stop_source source;
  void operator()() noexcept { (void)source.request_stop(); }
};

}  // namespace weft::detail
