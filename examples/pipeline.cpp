// Three stages with bounded channels between them: one fiber makes numbers, many work on them
// (fan-out), one collects the results (fan-in). A stage that is too fast parks when the channel to
// the next stage is full. This back pressure bounds the memory.
//
//   pipeline --items 1000000 --fibers 16 --capacity 32
//   pipeline --items 200 --fibers 3 --trace trace.json     who ran when, for ui.perfetto.dev
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/trace.hpp>
#include <weft/wait_group.hpp>

#include "command_line.hpp"

namespace {

struct Options {
  std::uint64_t items = 200'000;
  unsigned fibers = 8;
  std::size_t capacity = 16;
  unsigned workers = 0;
  std::string trace;
};

// The work: how many steps n -> n / 2 or 3 n + 1 lead from `start` to 1.
struct Chain {
  std::uint64_t start = 0;
  unsigned steps = 0;
};

Chain chain_from(std::uint64_t start) {
  Chain chain{.start = start};
  for (std::uint64_t n = start; n != 1; ++chain.steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return chain;
}

// Returns the longer chain. Of two equally long chains it returns the one with the smaller start,
// so that the order of arrival does not matter.
Chain longer(const Chain& left, const Chain& right) {
  if (left.steps != right.steps) return left.steps > right.steps ? left : right;
  return left.start < right.start ? left : right;
}

struct Outcome {
  Chain longest;
  std::uint64_t received = 0;
  std::uint64_t waits = 0;  // How often the first stage waited for the second.
  std::size_t most_queued = 0;
};

Outcome run_pipeline(const Options& options) {
  weft::Channel<std::uint64_t> numbers(options.capacity);
  weft::Channel<Chain> chains(options.capacity);
  Outcome outcome;

  weft::go({.name = "numbers"}, [&] {
    for (std::uint64_t start = 1; start <= options.items; ++start) {
      std::uint64_t number = start;
      if (numbers.try_send(number) == weft::ChannelStatus::ok) continue;
      ++outcome.waits;  // The channel is full: this is back pressure.
      (void)numbers.send(number);
    }
    numbers.close();  // The workers drain the channel, then get its end.
  });

  weft::WaitGroup working;
  for (unsigned i = 0; i < options.fibers; ++i) {
    working.add();
    weft::go({.name = fmt::format("chains {}", i + 1)}, [&] {
      while (const auto start = numbers.receive()) (void)chains.send(chain_from(*start));
      working.done();
    });
  }
  // Closes the channel after the last worker has ended, because no worker sends any more by then.
  auto closer = weft::spawn({.name = "closer"}, [&] {
    working.wait();
    chains.close();
  });

  while (const auto chain = chains.receive()) {
    outcome.longest = longer(outcome.longest, *chain);
    ++outcome.received;
    outcome.most_queued = std::max(outcome.most_queued, numbers.size_hint());
  }
  closer.join();
  return outcome;
}

// Computes the longest chain with a plain loop, to check the result.
Chain longest_by_loop(std::uint64_t items) {
  Chain longest;
  for (std::uint64_t start = 1; start <= items; ++start) {
    longest = longer(longest, chain_from(start));
  }
  return longest;
}

int run(const Options& options) {
  if (!options.trace.empty()) weft::trace::start();
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = weft::run(weft::RuntimeOptions{.workers = options.workers},
                                    [&] { return run_pipeline(options); });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (!options.trace.empty()) {
    weft::trace::stop();
    if (const std::error_code error = weft::trace::write_file(options.trace)) {
      throw std::system_error(error, options.trace);
    }
  }
  const Chain expected = longest_by_loop(options.items);
  if (outcome.received != options.items || outcome.longest.start != expected.start ||
      outcome.most_queued > options.capacity) {
    throw std::logic_error("the pipeline and a plain loop disagree");
  }
  fmt::print("{} items through {} fibers in {:.3f} s\n", outcome.received, options.fibers,
             elapsed.count());
  fmt::print("longest chain: from {} in {} steps; a plain loop finds the same\n",
             outcome.longest.start, outcome.longest.steps);
  fmt::print("at most {} numbers waited in the first channel, whose capacity is {}\n",
             outcome.most_queued, options.capacity);
  fmt::print("the first stage had to wait for the second {} times\n", outcome.waits);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line("pipeline",
                             "A pipeline of fibers with fan-out, fan-in and back pressure.");
  line.add("--items", options.items, 1, 100'000'000, "numbers that go through");
  line.add("--fibers", options.fibers, 1, 100'000, "fibers of the middle stage");
  line.add("--capacity", options.capacity, 0, 1'000'000, "places of a channel; 0: unbuffered");
  line.add("--workers", options.workers, 0, 1024, "worker threads; 0: one per processor");
  line.add("--trace", options.trace, "a file for a trace of the run");
  return line.run(argc, argv, [&] { return run(options); });
}
