// Creates a shortage of descriptors for tests.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <vector>
#include <weft/this_fiber.hpp>

namespace weft::test {

// Sets the soft limit of open descriptors for a scope.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t limit) {
    CHECK(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit changed = before_;
    changed.rlim_cur = limit < before_.rlim_max ? limit : before_.rlim_max;
    CHECK(::setrlimit(RLIMIT_NOFILE, &changed) == 0);
  }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// Returns the limit with which `count` descriptors can still be opened. A number counts as free if
// one of several checks finds it free, because watching threads briefly open files in /proc.
inline rlim_t limit_that_leaves(int count) {
  std::vector<bool> is_used(1024, true);
  for (int look = 0; look < 10; ++look) {
    for (std::size_t i = 0; i < is_used.size(); ++i) {
      if (::fcntl(static_cast<int>(i), F_GETFD) < 0) is_used[i] = false;
    }
    this_fiber::sleep_for(std::chrono::milliseconds(1));
  }
  std::size_t limit = 0;
  for (int left = count; limit < is_used.size() && (is_used[limit] || left > 0); ++limit) {
    if (!is_used[limit]) --left;
  }
  return limit;
}

}  // namespace weft::test
