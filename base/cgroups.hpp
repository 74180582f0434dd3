// The limits that control groups set for this process.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft::base {

// Finds the groups of this process, in hierarchies of version 1, version 2, or both (hybrid). The
// parents of a group also limit the process, if the system shows them to it.
class Cgroups {
 public:
  // Reads the groups of this process. All file paths begin with `root`, so that a test can supply
  // its own files. Throws std::bad_alloc.
  explicit Cgroups(std::string root = {});

  // Returns the smallest quota of processor time in processors, rounded up; 0 for no quota.
  // Throws std::bad_alloc.
  [[nodiscard]] unsigned processors() const;
  // Returns the smallest limit of memory in bytes, including memory.high; 0 for no limit.
  // Throws std::bad_alloc.
  [[nodiscard]] std::size_t memory() const;

 private:
  struct Membership {
    std::string controllers;  // Separated by commas; empty in version 2.
    std::string path;         // Relative to the root of the hierarchy.
  };
  // Holds a group's folder, and the mount point at which the search for parent groups ends.
  struct Folder {
    std::string mount;
    std::string path;  // Relative to `mount`; empty, or begins with a slash.
  };
  // The folders with limits of processors and of memory; a hybrid system has them in both versions.
  struct Folders {
    std::vector<Folder> unified;
    std::vector<Folder> processors;
    std::vector<Folder> memory;
  };

  void read_mount(const std::string& line, const std::vector<Membership>& memberships);

  std::string root_;
  Folders folders_;
};

// Parses "max" or a quota and a period, as in cgroup v2's cpu.max; returns 0 if there is no limit.
[[nodiscard]] unsigned parse_cpu_quota(const char* text) noexcept;

}  // namespace weft::base
