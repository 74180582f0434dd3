#include "base/cgroups.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace {

using weft::base::Cgroups;
using weft::base::parse_cpu_quota;

// Makes a folder with files that replace the system's files; the destructor removes the folder.
class Tree {
 public:
  Tree() {
    std::string name = std::filesystem::temp_directory_path() / "weft-cgroups-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root_ = name;
  }
  ~Tree() { std::filesystem::remove_all(root_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  Tree& put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
    return *this;
  }
  // Writes the memberships and mounts of a system with cgroups version 2 at /sys/fs/cgroup.
  Tree& unified(const std::string& group) {
    return put("/proc/self/cgroup", "0::" + group)
        .put("/proc/self/mountinfo",
             "22 1 8:1 / / rw - ext4 /dev/root rw\n"
             "31 22 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate");
  }
  // Writes the memberships and mounts of a system with the two controllers in version 1. If
  // `mounted` is not "/", the files look as in a container without a separate namespace.
  Tree& hybrid(const std::string& group, const std::string& mounted = "/") {
    return put("/proc/self/cgroup",
               "4:memory:" + group + "\n2:cpu,cpuacct:" + group + "\n1:cpuset:/\n0::/")
        .put("/proc/self/mountinfo",
             "30 22 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"
             "31 30 0:27 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n"
             "32 30 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
             "33 30 0:29 " +
                 mounted +
                 " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                 "34 30 0:30 " +
                 mounted + " /sys/fs/cgroup/memory rw master:3 - cgroup cgroup rw,memory");
  }
  Tree& quota(const std::string& folder, const std::string& microseconds) {
    return put(folder + "/cpu.cfs_quota_us", microseconds)
        .put(folder + "/cpu.cfs_period_us", "100000");
  }
  [[nodiscard]] Cgroups groups() const { return Cgroups(root_); }

 private:
  std::string root_;
};

TEST_SUITE_BEGIN("base/cgroups");

TEST_CASE("the CPU quota of a control group is rounded up to whole processors") {
  CHECK(parse_cpu_quota("100000 100000") == 1);
  CHECK(parse_cpu_quota("100001 100000") == 2);
  CHECK(parse_cpu_quota("250000 100000") == 3);
  CHECK(parse_cpu_quota("1 100000") == 1);
  CHECK(parse_cpu_quota("800000 100000\n") == 8);
}

TEST_CASE("a missing or malformed CPU quota sets no limit on processors") {
  CHECK(parse_cpu_quota("max 100000") == 0);
  CHECK(parse_cpu_quota("max") == 0);
  CHECK(parse_cpu_quota("") == 0);
  CHECK(parse_cpu_quota("100000") == 0);
  CHECK(parse_cpu_quota("100000 0") == 0);
  CHECK(parse_cpu_quota("-1 100000") == 0);
  CHECK(parse_cpu_quota("100000 -5") == 0);
  CHECK(parse_cpu_quota("a b") == 0);
}

TEST_CASE("a huge CPU quota does not overflow into a small number of processors") {
  CHECK(parse_cpu_quota("9223372036854775807 1") != 1);
  // A quota that does not fit into the type means no limit; it must not wrap around to a few
  // processors.
  const unsigned processors = parse_cpu_quota("4294967297 1");
  CHECK((processors == 0 || processors > 1'000'000));
}

TEST_CASE(
    "the smallest CPU quota of a control group and its ancestors applies in cgroup version 2") {
  Tree tree;
  tree.unified("/a/b").put("/sys/fs/cgroup/a/b/cpu.max", "max 100000");
  CHECK(tree.groups().processors() == 0);
  tree.put("/sys/fs/cgroup/a/cpu.max", "250000 100000");
  CHECK(tree.groups().processors() == 3);
  tree.put("/sys/fs/cgroup/a/b/cpu.max", "400000 100000");
  CHECK(tree.groups().processors() == 3);
  tree.put("/sys/fs/cgroup/a/b/cpu.max", "100000 100000");
  CHECK(tree.groups().processors() == 1);
}

TEST_CASE(
    "the smallest CPU quota of a control group and its ancestors applies in cgroup version 1") {
  Tree tree;
  tree.hybrid("/a/b").quota("/sys/fs/cgroup/cpu,cpuacct/a/b", "-1");
  CHECK(tree.groups().processors() == 0);
  tree.quota("/sys/fs/cgroup/cpu,cpuacct/a", "150000");
  CHECK(tree.groups().processors() == 2);
  tree.quota("/sys/fs/cgroup/cpu,cpuacct/a/b", "50000");
  CHECK(tree.groups().processors() == 1);
}

TEST_CASE(
    "the CPU quota of a version 1 control group applies in a container that mounts the group as "
    "its root") {
  Tree tree;
  tree.hybrid("/docker/c1", "/docker/c1").quota("/sys/fs/cgroup/cpu,cpuacct", "300000");
  CHECK(tree.groups().processors() == 3);
  // The mount of a sibling whose name is a prefix does not show the group.
  tree.hybrid("/docker/c11", "/docker/c1");
  CHECK(tree.groups().processors() == 0);
}

TEST_CASE("the smaller CPU quota applies when cgroup versions 1 and 2 both set a quota") {
  Tree tree;
  tree.hybrid("/a").quota("/sys/fs/cgroup/cpu,cpuacct/a", "400000");
  tree.put("/sys/fs/cgroup/unified/cpu.max", "200000 100000");
  CHECK(tree.groups().processors() == 2);
}

TEST_CASE(
    "the smallest memory limit of a control group and its ancestors applies in both cgroup "
    "versions") {
  Tree tree;
  tree.unified("/a/b").put("/sys/fs/cgroup/a/b/memory.max", "max");
  CHECK(tree.groups().memory() == 0);
  tree.put("/sys/fs/cgroup/a/memory.max", "2097152");
  CHECK(tree.groups().memory() == 2'097'152);
  tree.put("/sys/fs/cgroup/a/b/memory.high", "1048576");
  CHECK(tree.groups().memory() == 1'048'576);

  Tree older;
  older.hybrid("/a").put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712");
  CHECK(older.groups().memory() == 0);
  older.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4194304");
  CHECK(older.groups().memory() == 4'194'304);
}

TEST_CASE("a system without cgroup files limits neither processors nor memory") {
  const Tree tree;
  CHECK(tree.groups().processors() == 0);
  CHECK(tree.groups().memory() == 0);
}

TEST_SUITE_END();

}  // namespace
