// Stops a search when it has found enough numbers. One fiber hands out ranges of numbers (fan-out),
// many search them, and what they find comes together in one channel (fan-in). Then the scope of
// all these fibers is cancelled, and each of them ends, wherever it waits.
//
//   first_found --wanted 3 --bits 16 --fibers 100
#include <fmt/core.h>

#include <bit>
#include <chrono>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <weft/channel.hpp>
#include <weft/context.hpp>
#include <weft/runtime.hpp>
#include <weft/select.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "command_line.hpp"

namespace {

struct Options {
  std::size_t wanted = 3;
  int bits = 16;
  unsigned fibers = 100;
  unsigned workers = 0;
};

// Mixes the bits of a number well (splitmix64): no shortcut leads to a small result.
std::uint64_t mixed(std::uint64_t number) {
  number += 0x9E3779B97F4A7C15;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EB;
  return number ^ (number >> 31);
}
bool is_hit(std::uint64_t number, int bits) { return std::countl_zero(mixed(number)) >= bits; }

constexpr std::uint64_t kRange = 1000;
using Numbers = weft::Channel<std::uint64_t>;

// Hands out the beginnings of ranges until the scope ends.
void hand_out(Numbers& ranges, const weft::Context& scope) {
  for (std::uint64_t first = 0;; first += kRange) {
    if (ranges.send_until(first, scope) != weft::ChannelStatus::ok) return;
  }
}

// Searches ranges until the scope ends. The end of the scope can end each wait here.
void search(Numbers& ranges, Numbers& hits, int bits, const weft::Context& scope) {
  for (bool goes_on = true; goes_on;) {
    std::uint64_t first = 0;
    weft::select(weft::on_receive(ranges, [&](auto range) { first = range.value(); }),
                 weft::on_stop(scope.token(), [&] { goes_on = false; }));
    if (!goes_on) return;
    for (std::uint64_t number = first; number < first + kRange; ++number) {
      if (!is_hit(number, bits)) continue;
      std::uint64_t hit = number;
      if (hits.send_until(hit, scope) != weft::ChannelStatus::ok) return;
    }
    weft::this_fiber::yield();  // Lets other fibers run between two ranges.
  }
}

std::set<std::uint64_t> find(const Options& options) {
  Numbers ranges(options.fibers);
  Numbers hits;
  std::set<std::uint64_t> found;

  weft::TaskGroup group;
  const weft::Context& scope = group.context();
  group.spawn([&] { hand_out(ranges, scope); });
  for (unsigned i = 0; i < options.fibers; ++i) {
    group.spawn([&] { search(ranges, hits, options.bits, scope); });
  }
  while (found.size() < options.wanted) found.insert(hits.receive().value());
  group.cancel();
  group.join();  // All fibers have ended: none uses the channels any more.
  return found;
}

int run(const Options& options) {
  weft::Runtime runtime({.workers = options.workers});
  const auto found = runtime.run([&] { return find(options); });
  for (const std::uint64_t number : found) {
    if (!is_hit(number, options.bits)) throw std::logic_error("that is no hit");
    fmt::print("{:>8} becomes {:#018x}\n", number, mixed(number));
  }
  if (!runtime.wait_idle_for(std::chrono::seconds(10))) {
    throw std::logic_error("some fibers are left");
  }
  fmt::print("{} numbers whose first {} bits become 0; the {} fibers that searched have left\n",
             found.size(), options.bits, options.fibers);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line("first_found",
                             "Many fibers search; when enough has been found, all are cancelled.");
  line.add("--wanted", options.wanted, 1, 1000, "hits after which the search ends");
  line.add("--bits", options.bits, 1, 28, "leading zeros that make a hit");
  line.add("--fibers", options.fibers, 1, 100'000, "fibers that search");
  line.add("--workers", options.workers, 0, 1024, "worker threads; 0: one per processor");
  return line.run(argc, argv, [&] { return run(options); });
}
