// A callback for a stop request, safe for fibers.
#pragma once

#include <optional>
#include <stop_token>
#include <utility>

namespace weft::detail {

// A std::stop_callback that one thread may add and another thread may remove. Its removal compares
// the calling thread with the thread that requests the stop, to decide whether it must wait for the
// callback's end. Compilers may cache the thread's identity across a switch. With an outdated
// identity, the removal might not wait, and the callback would use destroyed objects. So the
// removal is a separate function, which no cached value reaches.
template <class Callback>
class StopRegistration {
 public:
  StopRegistration() noexcept = default;
  ~StopRegistration() { remove(); }
  StopRegistration(const StopRegistration&) = delete;
  StopRegistration& operator=(const StopRegistration&) = delete;

  // Calls `callback` when a stop of `token` is requested, or at once if a stop was requested
  // before.
  void add(const std::stop_token& token, Callback callback) noexcept {
    remove();
    callback_.emplace(token, std::move(callback));
  }
  // Waits for the end of a callback in progress.
  [[gnu::noinline]] void remove() noexcept { callback_.reset(); }

 private:
  std::optional<std::stop_callback<Callback>> callback_;
};

// A callback that forwards the stop request to `source`.
struct RequestStop {
  std::stop_source source;
  void operator()() noexcept { (void)source.request_stop(); }
};

}  // namespace weft::detail
