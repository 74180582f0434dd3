// Finds prime numbers with a chain of fibers: the first fiber counts, and each prime found adds a
// filter, which passes on the numbers that its prime does not divide. Numbers go from fiber to
// fiber over unbuffered channels, so the program does little arithmetic and very many switches.
//
//   prime_sieve --primes 1000
#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>

#include "command_line.hpp"

namespace {

using Number = std::uint64_t;
using Numbers = weft::Channel<Number>;
using Link = std::shared_ptr<Numbers>;  // Two fibers use a link; the last one frees it.

struct Options {
  unsigned primes = 1000;
  unsigned workers = 0;
  bool quiet = false;
};

// Sends 2, 3, 4, ... until the receiver closes the link.
void count_up(const Link& out) {
  for (Number number = 2; out->send(number); ++number) {
  }
}

// Passes on the numbers that `prime` does not divide. Closes `in` when `out` is closed, so closing
// goes from the last filter to the first.
void filter(const Link& in, const Link& out, Number prime) {
  while (const auto number = in->receive()) {
    if (*number % prime != 0 && !out->send(*number)) break;
  }
  in->close();
}

std::vector<Number> first_primes(unsigned count) {
  std::vector<Number> primes;
  auto last = std::make_shared<Numbers>();
  weft::go([out = last] { count_up(out); });
  while (primes.size() < count) {
    const Number prime = last->receive().value();
    primes.push_back(prime);
    auto next = std::make_shared<Numbers>();
    weft::go([in = last, out = next, prime] { filter(in, out, prime); });
    last = next;
  }
  last->close();
  return primes;
}

bool is_prime(Number number) {
  for (Number divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return number >= 2;
}

// Checks the sieve against the definition of a prime: no number is wrong, and no prime is missing.
void check(const std::vector<Number>& primes) {
  std::size_t index = 0;
  for (Number number = 2; number <= primes.back(); ++number) {
    if (!is_prime(number)) continue;
    if (index == primes.size() || primes[index++] != number) {
      throw std::logic_error(fmt::format("the sieve is wrong about {}", number));
    }
  }
}

int sieve(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto primes = weft::run(weft::RuntimeOptions{.workers = options.workers},
                                [&] { return first_primes(options.primes); });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  check(primes);
  if (!options.quiet) {
    for (const Number prime : primes) fmt::print("{}\n", prime);
  }
  fmt::print(stderr, "{} primes up to {} through as many fibers in {:.3f} s\n", primes.size(),
             primes.back(), elapsed.count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line("prime_sieve",
                             "Finds prime numbers with a chain of fibers, one for each prime.");
  line.add("--primes", options.primes, 1, 20'000, "how many to find");
  line.add("--workers", options.workers, 0, 1024, "worker threads; 0: one per processor");
  line.add_flag("--quiet", options.quiet, "print no primes, only how long it took");
  return line.run(argc, argv, [&] { return sieve(options); });
}
