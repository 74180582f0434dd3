// A token bucket: a request needs a token, a ticker adds a token each period, and the bucket holds
// enough tokens for a short burst. The bucket is a channel of tokens. A client may give up before
// the next token comes: here every fifth client does.
//
//   rate_limiter --per-second 200 --burst 20 --requests 100
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/runtime.hpp>
#include <weft/select.hpp>
#include <weft/timer.hpp>
#include <weft/until.hpp>
#include <weft/wait_group.hpp>

#include "command_line.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  unsigned per_second = 200;
  unsigned burst = 20;
  unsigned requests = 100;
};

class RateLimiter {
 public:
  RateLimiter(unsigned per_second, unsigned burst)
      : tokens_(burst),
        refill_(weft::spawn([this, per_second, burst] { refill(per_second, burst); })) {}
  ~RateLimiter() { stop_.request_stop(); }  // The handle then joins the fiber that refills.

  // Parks until the caller has a token; returns false if `until` ended the wait.
  [[nodiscard]] bool wait(const weft::Until& until = {}) {
    std::optional<Token> token;
    return tokens_.receive_until(token, until) == weft::ChannelStatus::ok;
  }

 private:
  struct Token {};

  void refill(unsigned per_second, unsigned burst) {
    Token token;
    for (unsigned i = 0; i < burst; ++i) (void)tokens_.try_send(token);  // The bucket starts full.
    weft::Ticker ticker(std::chrono::nanoseconds(std::chrono::seconds(1)) / per_second);
    for (bool goes_on = true; goes_on;) {
      weft::select(weft::on_tick(ticker, [&] { (void)tokens_.try_send(token); }),  // A full bucket
                                                                                   // drops it.
                   weft::on_stop(stop_.get_token(), [&] { goes_on = false; }));
    }
  }

  weft::Channel<Token> tokens_;
  std::stop_source stop_;
  weft::JoinHandle<void> refill_;  // Destroyed first, as its fiber uses the other members.
};

struct Outcome {
  std::vector<Clock::time_point> served;  // In the order of time.
  unsigned gave_up = 0;
};

Outcome send_requests(const Options& options) {
  RateLimiter limiter(options.per_second, options.burst);
  Outcome outcome;
  weft::Mutex mutex;  // Guards the outcome.
  weft::WaitGroup clients;
  for (unsigned i = 0; i < options.requests; ++i) {
    clients.add();
    weft::go([&, is_patient = i % 5 != 4] {
      using std::chrono_literals::operator""ms;
      const bool is_served = is_patient ? limiter.wait() : limiter.wait(weft::Deadline::after(1ms));
      {
        const std::lock_guard guard(mutex);
        if (is_served) {
          outcome.served.push_back(Clock::now());
        } else {
          ++outcome.gave_up;
        }
      }
      clients.done();
    });
  }
  clients.wait();
  return outcome;
}

int run(const Options& options) {
  const auto start = Clock::now();
  const Outcome outcome = weft::run([&] { return send_requests(options); });
  // At no moment have more clients been served than the burst and the refills allow.
  std::size_t count = 0;
  for (const auto time : outcome.served) {
    const std::chrono::duration<double> elapsed = time - start;
    const double allowed = options.burst + elapsed.count() * options.per_second;
    if (static_cast<double>(++count) > allowed + 1) throw std::logic_error("too fast");
  }
  if (count + outcome.gave_up != options.requests) throw std::logic_error("a request is lost");
  const std::chrono::duration<double> elapsed = outcome.served.back() - start;
  fmt::print("{} requests: {} served, {} gave up\n", options.requests, count, outcome.gave_up);
  fmt::print("the last one came after {:.3f} s; {} at once and then {} a second take {:.3f} s\n",
             elapsed.count(), options.burst, options.per_second,
             std::max(0.0, (static_cast<double>(count) - options.burst) / options.per_second));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line("rate_limiter",
                             "Lets requests through at a rate, and bursts up to a size.");
  line.add("--per-second", options.per_second, 1, 10'000,
           "requests that are let through each second");
  line.add("--burst", options.burst, 1, 1'000'000,
           "requests that are let through at once after a pause");
  line.add("--requests", options.requests, 1, 1'000'000, "requests that all come at the same time");
  return line.run(argc, argv, [&] { return run(options); });
}
