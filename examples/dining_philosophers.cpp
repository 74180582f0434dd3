// Philosophers sit at a round table, with a fork between each two. A hungry philosopher needs both
// forks next to the plate. If all took the left one first, each might hold one and wait for the
// other forever. Here every philosopher takes the fork with the lower number first, so no cycle of
// waits can arise.
//
//   dining_philosophers --philosophers 5 --meals 10000
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <vector>
#include <weft/mutex.hpp>
#include <weft/runtime.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>

#include "command_line.hpp"

namespace {

struct Options {
  std::size_t philosophers = 5;
  std::uint64_t meals = 10'000;
  unsigned workers = 0;
};

class Table {
 public:
  explicit Table(std::size_t seats) : forks_(seats), eats_(seats), meals_(seats) {}

  // Thinks and eats `meals` times at a seat.
  void dine(std::size_t seat, std::uint64_t meals) {
    for (std::uint64_t i = 0; i < meals; ++i) {
      weft::this_fiber::yield();  // Thinks.
      const auto [first, second] = std::minmax({seat, after(seat)});
      const std::lock_guard one(forks_[first]);
      const std::lock_guard other(forks_[second]);
      eat(seat);
    }
  }
  [[nodiscard]] const std::vector<std::uint64_t>& meals() const { return meals_; }

 private:
  [[nodiscard]] std::size_t after(std::size_t seat) const { return (seat + 1) % forks_.size(); }
  [[nodiscard]] std::size_t before(std::size_t seat) const {
    return (seat + forks_.size() - 1) % forks_.size();
  }
  // Called with both forks in hand, so the neighbours have to wait.
  void eat(std::size_t seat) {
    eats_[seat] = 1;
    weft::this_fiber::yield();  // If the locks failed, a neighbour could eat now.
    if (eats_[before(seat)] + eats_[after(seat)] > 0) {
      throw std::logic_error("two neighbours eat at the same time");
    }
    eats_[seat] = 0;
    ++meals_[seat];
  }

  // The forks guard the eats_ next to them: nothing here is atomic.
  std::vector<weft::Mutex> forks_;
  std::vector<char> eats_;
  std::vector<std::uint64_t> meals_;
};

int dinner(const Options& options) {
  Table table(options.philosophers);
  const auto start = std::chrono::steady_clock::now();
  weft::run(weft::RuntimeOptions{.workers = options.workers}, [&] {
    weft::TaskGroup philosophers;
    for (std::size_t seat = 0; seat < options.philosophers; ++seat) {
      philosophers.spawn([&table, &options, seat] { table.dine(seat, options.meals); });
    }
    philosophers.join();  // Rethrows an exception of a philosopher.
  });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  for (const std::uint64_t meals : table.meals()) {
    if (meals != options.meals) throw std::logic_error("somebody is still hungry");
  }
  fmt::print("{} philosophers had {} meals each in {:.3f} s; nobody starved, no fork was shared\n",
             options.philosophers, options.meals, elapsed.count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line("dining_philosophers",
                             "Philosophers share forks, and none of them starves.");
  line.add("--philosophers", options.philosophers, 2, 1'000'000, "how many sit at the table");
  line.add("--meals", options.meals, 1, 1'000'000'000, "meals of each");
  line.add("--workers", options.workers, 0, 1024, "worker threads; 0: one per processor");
  return line.run(argc, argv, [&] { return dinner(options); });
}
