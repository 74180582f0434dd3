// Registers stop callbacks for fibers. A fiber may remove its callback on another thread.
#pragma once

#include <optional>
#include <stop_token>
#include <utility>

namespace weft::detail {

// A std::stop_callback that one thread may add and another thread may remove. To decide whether it
// must wait until the callback ends, the removal compares the calling thread with the thread that
// requests the stop. Compilers may keep a cached thread identity across a switch. If this identity
// were outdated, the removal might not wait, and the callback would then use destroyed objects. The
// removal is therefore a separate function, in which the compiler cannot use a cached identity.
template <class Callback>
class StopRegistration {
 public:
  StopRegistration() noexcept = default;
  ~StopRegistration() { remove(); }
  StopRegistration(const StopRegistration&) = delete;
  StopRegistration& operator=(const StopRegistration&) = delete;

  // Registers `callback` with `token`. If a stop has already been requested, calls it at once.
  void add(const std::stop_token& token, Callback callback) noexcept {
    remove();
    callback_.emplace(token, std::move(callback));
  }
  // Removes the callback; if another thread is running it, waits until it ends.
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
