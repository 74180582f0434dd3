// Tests limits of a control group. Each case is a child process in a separate group. If no group
// can be made, for example without root's rights, the case reports that and tests nothing.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <weft/blocking.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/child.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using weft::test::kNotPossibleHere;

// Makes a group with one limit, below the root. It has version 1 or 2, as the system does.
class Group {
 public:
  struct Place {
    const char* folder;
    const char* file;
  };
  Group(std::array<Place, 3> places, const std::string& limit) {
    for (const Place& place : places) {
      const std::string folder =
          std::string(place.folder) + "/weft-test-" + std::to_string(::getpid());
      if (::mkdir(folder.c_str(), 0755) != 0) continue;
      folder_ = folder;
      if (write(place.file, limit)) return;
      leave();
    }
  }
  ~Group() { leave(); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] bool exists() const { return !folder_.empty(); }
  // Adds the calling process, which should be alone.
  [[nodiscard]] bool enter() const { return write("cgroup.procs", "0"); }

 private:
  [[nodiscard]] bool write(const char* file, const std::string& text) const {
    std::ofstream stream(folder_ + "/" + file);
    stream << text << std::flush;
    return stream.good();
  }
  // The group is empty only a moment after its last process has been waited for.
  void leave() {
    for (int i = 0; i < 1000 && exists() && ::rmdir(folder_.c_str()) != 0; ++i) ::usleep(1000);
    folder_.clear();
  }

  std::string folder_;
};

Group pids_group(unsigned threads) {
  return {{{{"/sys/fs/cgroup/pids", "pids.max"},
            {"/sys/fs/cgroup", "pids.max"},
            {"/sys/fs/cgroup/unified", "pids.max"}}},
          std::to_string(threads)};
}
Group memory_group(std::size_t bytes) {
  return {{{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
            {"/sys/fs/cgroup", "memory.max"},
            {"/sys/fs/cgroup/unified", "memory.max"}}},
          std::to_string(bytes)};
}

// Returns the return value of the body, or the negated number of the signal that ended it.
template <class Body>
int status_in(const Group& group, Body body) {
  if (!group.exists()) return kNotPossibleHere;
  return weft::test::status_of_child([&] { return group.enter() ? body() : kNotPossibleHere; });
}

// Returns true if the case has been tested; otherwise prints a message.
bool tested(int status) {
  if (status != kNotPossibleHere) return true;
  weft::test::skip("no control group can be made here");
  return false;
}

TEST_SUITE_BEGIN("runtime/cgroups");

// Makes 20 blocking calls. Ended threads still count for a moment, so it may need several tries.
int block_often() {
  for (;;) {
    try {
      return weft::run({.workers = 1, .monitor = false}, [] {
        weft::WaitGroup group;
        for (int i = 0; i < 20; ++i) {
          group.go([] {
            for (bool done = false; !done;) {
              try {
                weft::blocking([] { ::usleep(1000); });
                done = true;
              } catch (const std::system_error&) {
                ::usleep(1000);
              }
            }
          });
        }
        group.wait();
        return 0;
      });
    } catch (const std::system_error&) {
      ::usleep(1000);
    }
  }
}

TEST_CASE(
    "a runtime that cannot start all its threads throws an error or runs with fewer threads") {
  if (weft::test::kSanitized) return weft::test::skip("some sanitizers start threads");
  const Group group = pids_group(3);
  const int status = status_in(group, [] {
    try {
      const weft::Runtime runtime({.workers = 8});
      return 1;
    } catch (const std::system_error& refusal) {
      if (refusal.code() != std::errc::resource_unavailable_try_again) return 2;
    }
    return block_often();
  });
  if (tested(status)) CHECK(status == 0);
}

constexpr std::size_t kNoGoal = std::numeric_limits<std::size_t>::max();

// Parks `fibers` fibers, or as many as the limits allow. With a goal, few fibers wait for their
// start.
int park_many(int fibers, std::size_t max_fibers, std::size_t memory_goal) {
  weft::Runtime runtime({.workers = 2, .max_fibers = max_fibers, .memory_goal = memory_goal});
  weft::Event end;
  bool refused = false;
  try {
    for (int i = 0; i < fibers; ++i) {
      runtime.go([&] { end.wait(); });
      if (memory_goal == kNoGoal || i % 1000 != 0) continue;
      while (runtime.stats().switches < runtime.stats().spawned) ::usleep(100);
    }
  } catch (const std::system_error& refusal) {
    refused = refusal.code() == weft::Errc::too_many_fibers;
  }
  // Ensures that all fibers have started. A second runtime's fiber would also be refused.
  if (memory_goal == kNoGoal) weft::run([] {});
  while (runtime.stats().switches < runtime.stats().spawned) ::usleep(1000);
  end.set();
  return refused ? 0 : 1;
}

TEST_CASE(
    "the kernel kills a program in a memory-limited cgroup unless max_fibers limits the number of "
    "fibers") {
  if (weft::test::kSanitized) return weft::test::skip("a sanitizer uses more memory itself");
  constexpr std::size_t kLimit = std::size_t{64} << 20;
  const Group group = memory_group(kLimit);
  // The fibers use 400 MB of stacks.
  const int unbounded = status_in(group, [] { return park_many(100'000, 1 << 26, kNoGoal); });
  if (!tested(unbounded)) return;
  CHECK(unbounded == -SIGKILL);
  CHECK(status_in(group, [] { return park_many(100'000, 2'000, kNoGoal); }) == 0);
}

TEST_CASE(
    "a runtime in a memory-limited cgroup refuses spawns before the kernel kills the program") {
  if (weft::test::kSanitized) return weft::test::skip("a sanitizer uses more memory itself");
  constexpr std::size_t kLimit = std::size_t{256} << 20;
  constexpr std::size_t kGoal = kLimit / 8 * 7;
  const Group group = memory_group(kLimit);
  const int status = status_in(group, [] {
    if (weft::Runtime().stats().memory_goal != kGoal) return 2;
    return park_many(100'000, 1 << 26, 0);  // The default, because fibers hold nearly all of the
                                            // memory.
  });
  if (tested(status)) CHECK(status == 0);
}

TEST_SUITE_END();

}  // namespace
