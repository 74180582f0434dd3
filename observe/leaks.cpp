#include "observe/leaks.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <tuple>

namespace weft::observe {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kFewest = 64;
// With fewer young fibers, a server may have stopped growing.
constexpr std::uint64_t kMostOldToAYoungOne = 16;

bool is_leak(const Leak& group) {
  return group.old >= kFewest && group.young * kMostOldToAYoungOne >= group.old;
}

void add(Leak& group, const FiberEntry& fiber) {
  if (group.count++ == 0 || fiber.age > group.example.age) group.example = fiber;
  if (fiber.age >= 10min) {
    ++group.old;
  } else if (fiber.age >= 1min) {
    ++group.young;
  }
}

}  // namespace

std::vector<Leak> find_leaks(const std::vector<FiberEntry>& fibers) {
  using Key = std::tuple<const void*, const std::type_info*, std::string_view>;
  std::map<Key, Leak> groups;
  for (const FiberEntry& fiber : fibers) {
    if (fiber.reason[0] == '\0') continue;
    add(groups[{fiber.site, fiber.type, fiber.reason}], fiber);
  }
  std::vector<Leak> leaks;
  for (const auto& [key, group] : groups) {
    if (is_leak(group)) leaks.push_back(group);
  }
  std::ranges::stable_sort(leaks, std::greater(), &Leak::count);
  return leaks;
}

}  // namespace weft::observe
