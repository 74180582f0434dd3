// Measures the cost of a trace: two fibers yield to each other, with the trace off and on
// alternately, so that both meet the same disturbances. Each yield causes three events. The program
// prints the medians and the fastest rounds, which a busy machine disturbs least.
//
//   trace_cost [ROUNDS] [YIELDS]     nanoseconds
//   trace_cost on|off YIELDS         one of them once, to be counted by callgrind
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>
#include <weft/go.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>
#include <weft/trace.hpp>

namespace {

constexpr double kEvents = 3;  // A fiber leaves, the next one runs, and the first is ready again.

// Returns nanoseconds per yield.
double yield_for(long yields) {
  const auto begin = std::chrono::steady_clock::now();
  auto other = weft::spawn([yields] {
    for (long i = 0; i < yields / 2; ++i) weft::this_fiber::yield();
  });
  for (long i = 0; i < yields / 2; ++i) weft::this_fiber::yield();
  other.join();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / static_cast<double>(yields);
}

double yield_traced(long yields) {
  weft::trace::start();
  const double took = yield_for(yields);
  weft::trace::stop();
  weft::this_fiber::yield();
  return took;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void compare(int rounds, long yields) {
  std::vector<double> off;
  std::vector<double> on;
  std::vector<double> event;
  for (int i = 0; i < rounds; ++i) {
    off.push_back(yield_for(yields));
    on.push_back(yield_traced(yields));
    event.push_back((on.back() - off.back()) / kEvents);
  }
  const double fastest_off = *std::ranges::min_element(off);
  const double fastest_on = *std::ranges::min_element(on);
  (void)std::printf("median:  a yield, off: %.1f ns; on: %.1f ns; an event: %.1f ns\n", median(off),
                    median(on), median(event));
  (void)std::printf("fastest: a yield, off: %.1f ns; on: %.1f ns; an event: %.1f ns\n", fastest_off,
                    fastest_on, (fastest_on - fastest_off) / kEvents);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "21";
  const long yields = argc > 2 ? std::atol(argv[2]) : 1'000'000;
  weft::run({.workers = 1}, [&] {
    if (what == "off") {
      (void)yield_for(yields);
    } else if (what == "on") {
      (void)yield_traced(yields);
    } else {
      compare(std::atoi(argc > 1 ? argv[1] : "21"), yields);
    }
  });
}
