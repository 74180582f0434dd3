// Declares a mutex for threads, with annotations for clang's lock analysis.
#pragma once

#include <mutex>
#include <weft/detail/guard.hpp>

namespace weft::detail {

// Wraps a std::mutex, so lock() blocks the thread. A fiber never holds it across a switch.
class WEFT_LOCK("mutex") ThreadMutex {
 public:
  constexpr ThreadMutex() noexcept = default;
  ThreadMutex(const ThreadMutex&) = delete;
  ThreadMutex& operator=(const ThreadMutex&) = delete;

  void lock() WEFT_ACQUIRES() { mutex_.lock(); }
  [[nodiscard]] bool try_lock() WEFT_TRY_ACQUIRES(true) { return mutex_.try_lock(); }
  void unlock() WEFT_RELEASES() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace weft::detail
