#include "base/memory_limits.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <limits>

namespace weft::base {

namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

// Returns the number at the beginning of a file, or `otherwise` if no number can be read.
std::size_t read_number(const char* path, std::size_t otherwise) noexcept {
  const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return otherwise;
  char text[64];
  const ssize_t length = ::read(descriptor, text, sizeof text - 1);
  (void)::close(descriptor);
  if (length <= 0) return otherwise;
  text[length] = '\0';
  char* end = nullptr;
  const auto number = static_cast<std::size_t>(std::strtoull(text, &end, 10));
  return end == text ? otherwise : number;
}

std::size_t limit_of(decltype(RLIMIT_AS) resource) noexcept {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return limit.rlim_cur;
}

}  // namespace

std::size_t address_space_left() noexcept {
  const std::size_t limit = limit_of(RLIMIT_AS);
  if (limit == kUnlimited) return limit;
  const std::size_t used =
      read_number("/proc/self/statm", 0) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return limit > used ? limit - used : 0;
}

std::size_t memory_in_use() noexcept {
  char text[128];
  const int descriptor = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  const ssize_t length = ::read(descriptor, text, sizeof text - 1);
  (void)::close(descriptor);
  text[length > 0 ? length : 0] = '\0';
  std::size_t resident = 0;
  std::size_t of_files = 0;
  if (std::sscanf(text, "%*s %zu %zu", &resident, &of_files) != 2 || of_files > resident) return 0;
  return (resident - of_files) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t most_mappings() noexcept {
  constexpr std::size_t kUsual = 65'530;
  return read_number("/proc/sys/vm/max_map_count", kUsual);
}

std::size_t count_mappings() noexcept {
  const int descriptor = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  std::size_t lines = 0;
  char text[4096];
  for (ssize_t length = 0; (length = ::read(descriptor, text, sizeof text)) > 0;) {
    for (ssize_t i = 0; i < length; ++i) lines += text[i] == '\n' ? 1 : 0;
  }
  (void)::close(descriptor);
  return lines;
}

bool name_memory_limit(char* text, std::size_t size) noexcept {
  constexpr std::size_t kNeverOvercommit = 2;
  const std::size_t space = limit_of(RLIMIT_AS);
  const std::size_t data = limit_of(RLIMIT_DATA);
  const std::size_t mappings = most_mappings();
  if (space != kUnlimited) {
    (void)std::snprintf(text, size, "ulimit -v = %zu KiB", space >> 10);
  } else if (data != kUnlimited) {
    (void)std::snprintf(text, size, "ulimit -d = %zu KiB", data >> 10);
  } else if (count_mappings() > mappings / 2) {
    (void)std::snprintf(text, size, "vm.max_map_count = %zu", mappings);
  } else if (read_number("/proc/sys/vm/overcommit_memory", 0) == kNeverOvercommit) {
    (void)std::snprintf(text, size, "vm.overcommit_memory = 2");
  } else {
    text[0] = '\0';
    return false;
  }
  return true;
}

}  // namespace weft::base
