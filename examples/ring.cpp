// Each fiber of a ring passes on the number that it received, less one. Nearly all fibers wait at
// any moment; the fiber that gets the 0 reports it. With 503 fibers this is the "thread ring" of
// many language comparisons.
//
//   ring --fibers 503 --hops 1000000
#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <weft/channel.hpp>
#include <weft/runtime.hpp>
#include <weft/task_group.hpp>

#include "command_line.hpp"

namespace {

struct Options {
  std::size_t fibers = 503;
  std::uint64_t hops = 1'000'000;
  unsigned workers = 0;
};

using Link = weft::Channel<std::uint64_t>;

// Returns the index of the fiber that gets the 0.
std::size_t end_of_hops(const Options& options) {
  std::deque<Link> links;  // Link i leads to fiber i; a deque, because channels cannot move.
  for (std::size_t i = 0; i < options.fibers; ++i) links.emplace_back(0);
  weft::Channel<std::size_t> winner;

  weft::TaskGroup ring;
  for (std::size_t i = 0; i < options.fibers; ++i) {
    ring.spawn([&, i, &in = links[i], &out = links[(i + 1) % options.fibers]] {
      for (const std::uint64_t hops_left : in) {
        if (hops_left == 0) {
          (void)winner.send(i);
        } else {
          (void)out.send(hops_left - 1);
        }
      }
    });
  }
  (void)links.front().send(options.hops);
  const std::size_t last = winner.receive().value();
  for (Link& link : links) link.close();  // Ends the loops.
  ring.join();
  return last;
}

int run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::size_t last = weft::run(weft::RuntimeOptions{.workers = options.workers},
                                     [&] { return end_of_hops(options); });
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  if (last != options.hops % options.fibers) {
    throw std::logic_error(fmt::format("fiber {} cannot have got the 0", last));
  }
  fmt::print("after {} hops the 0 is at fiber {} of {}, as it has to be; {:.0f} ns a hop\n",
             options.hops, last, options.fibers,
             elapsed.count() / static_cast<double>(options.hops));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line("ring", "A ring of fibers hands a number on.");
  line.add("--fibers", options.fibers, 2, 1'000'000, "fibers in the ring");
  line.add("--hops", options.hops, 1, 1'000'000'000, "times the number is handed on");
  line.add("--workers", options.workers, 0, 1024, "worker threads; 0: one per processor");
  return line.run(argc, argv, [&] { return run(options); });
}
