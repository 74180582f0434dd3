// Records the order in which callers arrive.
#pragma once

#include <mutex>
#include <utility>
#include <vector>
#include <weft/mutex.hpp>

namespace weft::test {

// A list to which fibers and threads append. (A plain vector would need all callers on one worker,
// on which a test should not rely.)
class OrderLog {
 public:
  void add(int entry) {
    const std::lock_guard guard(mutex_);
    entries_.push_back(entry);
  }
  [[nodiscard]] std::vector<int> take() {
    const std::lock_guard guard(mutex_);
    return std::exchange(entries_, {});
  }

 private:
  Mutex mutex_;
  std::vector<int> entries_;
};

}  // namespace weft::test
