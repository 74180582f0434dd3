// What the simulated fibers do.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/model/fiber.hpp"
#include "bench/model/units.hpp"

namespace weft::bench::model {

// Each load says which of these it uses, and for what.
struct LoadOptions {
  std::int64_t size = 100;
  std::int64_t rounds = 100;
  Time work = 0;  // What a fiber computes.
  Time duration = 20 * kMillisecond;
  unsigned percent = 50;
  unsigned workers = 1;
  std::uint64_t seed = 1;
};

// Throws std::invalid_argument for a name that is not in load_names().
[[nodiscard]] std::unique_ptr<Load> make_load(const std::string& name, const LoadOptions& options);
[[nodiscard]] std::vector<std::string> load_names();

// W1, and W1b with one round: `rounds` times `size` fibers are spawned by one, and waited for.
[[nodiscard]] std::unique_ptr<Load> make_batches(const LoadOptions& options);
// W10: fib(`size`); every call spawns a fiber for fib(n - 1), and joins it.
[[nodiscard]] std::unique_ptr<Load> make_fib(const LoadOptions& options);
// W5: a tree, ten children a node, with `size` leaves; each sends to its parent's channel.
[[nodiscard]] std::unique_ptr<Load> make_skynet(const LoadOptions& options);
// `size` pairs of fibers, of which always one computes and then wakes the other, `rounds` times.
[[nodiscard]] std::unique_ptr<Load> make_pairs(const LoadOptions& options);
// Requests come in from the kernel at random, `percent` of what all workers could do, for
// `duration`; each is answered by the fiber of its connection.
[[nodiscard]] std::unique_ptr<Load> make_server(const LoadOptions& options);
// Every `duration` / `rounds` a fiber comes from outside, which spawns `size` others.
[[nodiscard]] std::unique_ptr<Load> make_bursts(const LoadOptions& options);

}  // namespace weft::bench::model
