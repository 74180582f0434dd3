// The order in which callers came.
#pragma once

#include <mutex>
#include <utility>
#include <vector>
#include <weft/mutex.hpp>

namespace weft::test {

// A list that fibers and threads add to. (Only that they are on one worker would keep a plain
// vector in order, which is nothing that a test should build on.)
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
