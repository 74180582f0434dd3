#include "base/cgroups.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace weft::base {

namespace {

// Version 1 reports "no limit" as the largest number of whole pages.
constexpr std::size_t kNoMemoryLimit = std::size_t{1} << 62;

// A file that is open for reading, or none if it cannot be opened.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) noexcept
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) (void)::close(descriptor_);
  }
  // Returns the number of bytes read; 0 or less at the end, after a failure, or without a file.
  [[nodiscard]] ssize_t read(char* buffer, std::size_t size) const noexcept {
    for (;;) {
      const ssize_t length = ::read(descriptor_, buffer, size);
      if (length >= 0 || errno != EINTR) return length;
    }
  }

 private:
  const int descriptor_;
};

// Returns the part of the file that can be read. Does not use streams, because they would add 10 KB
// to each program.
std::string contents(const std::string& path) {
  std::string text;
  const OpenFile file(path);
  char part[4096];
  for (ssize_t length = 0; (length = file.read(part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(length));
  return text;
}

// Takes the first line from `text`; nothing if no line is left.
std::optional<std::string> take_line(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const std::size_t length = std::min(text.find('\n'), text.size());
  std::string line(text.substr(0, length));
  text.remove_prefix(std::min(length + 1, text.size()));
  return line;
}

std::string first_line(const std::string& path) {
  const std::string text = contents(path);
  return text.substr(0, text.find('\n'));
}

std::size_t memory_limit_in(const std::string& path) {
  const std::string line = first_line(path);
  const auto limit = static_cast<std::size_t>(std::strtoull(line.c_str(), nullptr, 10));
  return limit < kNoMemoryLimit ? limit : 0;
}

// Returns the smaller limit; 0 stands for no limit.
template <class Number>
Number smaller_limit(Number a, Number b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

// Returns the field with the number `number`, counted from 0; fields end with `separator`.
std::string_view field_of(std::string_view line, unsigned number, char separator = ' ') {
  for (; number > 0; --number) {
    const auto end = line.find(separator);
    if (end == std::string_view::npos) return {};
    line.remove_prefix(end + 1);
  }
  return line.substr(0, line.find(separator));
}

bool lists(std::string_view list, std::string_view name) {
  for (unsigned i = 0;; ++i) {
    const std::string_view each = field_of(list, i, ',');
    if (each.empty()) return false;
    if (each == name) return true;
  }
}

// Returns the path of a group below a mount that shows the group `mounted` and its subgroups;
// nothing if the group is not below `mounted`.
std::optional<std::string> path_below(std::string_view mounted, std::string_view path) {
  if (path == "/") path = {};
  if (mounted == "/") mounted = {};
  if (!path.starts_with(mounted)) return std::nullopt;
  path.remove_prefix(mounted.size());
  // The path of a group outside of the process's namespace begins with "/..".
  if (path.starts_with("/..")) return std::string();
  if (!path.empty() && path.front() != '/') return std::nullopt;
  return std::string(path);
}

// Calls `limit_in(folder)` for the group and for the groups above it, and returns the smallest
// limit.
template <class LimitIn>
auto smallest_on_path(const std::string& mount, std::string path, LimitIn limit_in) {
  auto smallest = limit_in(mount + path);
  while (!path.empty()) {
    path.resize(path.find_last_of('/'));
    smallest = smaller_limit(smallest, limit_in(mount + path));
  }
  return smallest;
}

}  // namespace

Cgroups::Cgroups(std::string root) : root_(std::move(root)) {
  std::vector<Membership> memberships;
  const std::string groups = contents(root_ + "/proc/self/cgroup");
  std::string_view rest = groups;
  while (const std::optional<std::string> line = take_line(rest)) {
    const auto controllers = line->find(':');
    if (controllers == std::string::npos) continue;
    const auto path = line->find(':', controllers + 1);
    if (path == std::string::npos) continue;
    memberships.push_back(
        {line->substr(controllers + 1, path - controllers - 1), line->substr(path + 1)});
  }
  if (memberships.empty()) return;
  const std::string mounts = contents(root_ + "/proc/self/mountinfo");
  rest = mounts;
  while (const std::optional<std::string> line = take_line(rest)) {
    if (line->find(" - cgroup") != std::string::npos) read_mount(*line, memberships);
  }
}

// The line contains the mounted group and the mount point. After a dash follow the type, the device
// and the options, which include the controllers.
void Cgroups::read_mount(const std::string& line, const std::vector<Membership>& memberships) {
  const std::string_view mount = line;
  const std::string_view system = mount.substr(mount.find(" - ") + 3);
  const bool is_unified = field_of(system, 0) == "cgroup2";
  const std::string_view options = field_of(system, 2);
  const auto add = [&](std::string_view controller, std::vector<Folder>& folders) {
    for (const Membership& each : memberships) {
      const bool is_there = is_unified
                                ? each.controllers.empty()
                                : lists(options, controller) && lists(each.controllers, controller);
      if (!is_there) continue;
      if (auto path = path_below(field_of(mount, 3), each.path)) {
        folders.push_back({root_ + std::string(field_of(mount, 4)), *std::move(path)});
      }
    }
  };
  if (is_unified) {
    add({}, folders_.unified);
    return;
  }
  add("cpu", folders_.processors);
  add("memory", folders_.memory);
}

unsigned Cgroups::processors() const {
  unsigned smallest = 0;
  for (const Folder& group : folders_.unified) {
    smallest = smaller_limit(
        smallest, smallest_on_path(group.mount, group.path, [](const std::string& folder) {
          return parse_cpu_quota(first_line(folder + "/cpu.max").c_str());
        }));
  }
  for (const Folder& group : folders_.processors) {
    smallest = smaller_limit(
        smallest, smallest_on_path(group.mount, group.path, [](const std::string& folder) {
          const std::string quota = first_line(folder + "/cpu.cfs_quota_us");
          const std::string period = first_line(folder + "/cpu.cfs_period_us");
          return parse_cpu_quota((quota + " " + period).c_str());
        }));
  }
  return smallest;
}

std::size_t Cgroups::memory() const {
  std::size_t smallest = 0;
  for (const Folder& group : folders_.unified) {
    smallest = smaller_limit(
        smallest, smallest_on_path(group.mount, group.path, [](const std::string& folder) {
          return smaller_limit(memory_limit_in(folder + "/memory.max"),
                               memory_limit_in(folder + "/memory.high"));
        }));
  }
  for (const Folder& group : folders_.memory) {
    smallest = smaller_limit(
        smallest, smallest_on_path(group.mount, group.path, [](const std::string& folder) {
          return memory_limit_in(folder + "/memory.limit_in_bytes");
        }));
  }
  return smallest;
}

unsigned parse_cpu_quota(const char* text) noexcept {
  long long quota = 0;
  long long period = 0;
  if (std::sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0) return 0;
  // The result is rounded up. A quota above the largest number of processors counts as no limit.
  const long long processors = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<unsigned>(std::min<long long>(processors, std::numeric_limits<int>::max()));
}

}  // namespace weft::base
