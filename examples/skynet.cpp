// Runs a tree of fibers: each fiber starts ten fibers, until there are a million leaves. A leaf
// sends its number to its parent, and each inner fiber sends the sum of the numbers that it
// receives. Starting fibers takes most of the time.
//
//   skynet --leaves 1000000
#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>

#include "command_line.hpp"

namespace {

using Sums = weft::Channel<std::uint64_t>;
constexpr std::uint64_t kChildren = 10;

// Sends first + (first + 1) + ... for `leaves` leaves to `parent`.
void node(Sums& parent, std::uint64_t first, std::uint64_t leaves) {
  if (leaves == 1) {
    (void)parent.send(first);
    return;
  }
  Sums sums(kChildren);  // One place per child, so that no child waits.
  const std::uint64_t part = leaves / kChildren;
  for (std::uint64_t i = 0; i < kChildren; ++i) {
    weft::go([&sums, child = first + i * part, part] { node(sums, child, part); });
  }
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < kChildren; ++i) sum += sums.receive().value();
  (void)parent.send(sum);
}

int run(unsigned workers, std::uint64_t leaves) {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t sum = weft::run(weft::RuntimeOptions{.workers = workers}, [&] {
    Sums result(1);
    node(result, 0, leaves);
    return result.receive().value();
  });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (sum != leaves * (leaves - 1) / 2) throw std::logic_error("the sum is wrong");
  fmt::print("{} fibers add up to {} in {:.3f} s\n", leaves, sum, elapsed.count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t leaves = 1'000'000;
  unsigned workers = 0;
  examples::CommandLine line("skynet", "Adds up the numbers of a tree of fibers.");
  line.add_choice("--leaves", leaves, {1, 10, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000},
                  "fibers without children; a power of ten");
  line.add("--workers", workers, 0, 1024, "worker threads; 0: one per processor");
  return line.run(argc, argv, [&] { return run(workers, leaves); });
}
