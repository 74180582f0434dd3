// A lack of descriptors, for tests.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

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

// The limit that leaves `count` descriptors to be opened.
inline rlim_t limit_that_leaves(int count) {
  const int lowest = ::fcntl(0, F_DUPFD, 0);
  CHECK(lowest >= 0);
  ::close(lowest);
  return static_cast<rlim_t>(lowest + count);
}

}  // namespace weft::test
