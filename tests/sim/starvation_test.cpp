#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/sim.hpp>
#include <weft/this_fiber.hpp>
#include <weft/wait_group.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("sim/starvation");

using namespace std::chrono_literals;
namespace sim = weft::sim;

namespace {

// Returns the reason for the failure, or an empty text if no run fails.
std::string reason_of(const std::function<void()>& body, const sim::Options& options) {
  try {
    (void)sim::explore(options, [&](sim::World&) { body(); });
  } catch (const sim::Failure& failure) {
    return failure.reason();
  }
  return {};
}

}  // namespace

TEST_CASE("a simulation reports the call stack of a ready fiber that waits too long to run") {
  const weft::test::TestGuard guard("a fiber that is ready for long without a turn starves");
  // Two fibers that wake each other keep their priorities, as each of their turns is short.
  const auto ping_pong = [] {
    weft::Channel<int> there;
    weft::Channel<int> back;
    bool is_over = false;
    weft::WaitGroup ended;
    ended.add(3);
    weft::go([&] {
      while (there.receive()) (void)back.send(0);
      ended.done();
    });
    weft::go([&] {
      while (!is_over && there.send(0)) (void)back.receive();
      there.close();
      ended.done();
    });
    weft::go([&] {
      weft::this_fiber::yield();
      is_over = true;
      ended.done();
    });
    ended.wait();
  };
  const sim::Options unfair{
      .seeds = 50, .strategy = sim::Strategy::priorities, .depth = 1, .starvation = 1ms};
  const std::string reason = reason_of(ping_pong, unfair);
  CHECK(reason.starts_with("a fiber of 'world' starves: it was ready for 0.001 "));
  CHECK(reason.find("is ready; runs ") != std::string::npos);
  CHECK(reason.find("is parked: channel ") != std::string::npos);
  CHECK(reason_of(ping_pong, {.seeds = 100, .starvation = 1us}).empty());
}

TEST_CASE("a simulation reports starvation when another fiber occupies the only worker") {
  const weft::test::TestGuard guard("a fiber starves while another one computes");
  const auto compute = [] {
    auto waits = weft::spawn([] { weft::this_fiber::yield(); });
    weft::this_fiber::yield();
    sim::compute(11s);
    waits.join();
  };
  CHECK(
      reason_of(compute, {.seeds = 20, .workers = 1}).starts_with("a fiber of 'world' starves: "));
  CHECK(reason_of(compute, {.seeds = 20, .workers = 2}).empty());
  CHECK(reason_of(compute, {.seeds = 20, .workers = 1, .starvation = 0s}).empty());
}

TEST_CASE(
    "a simulation reports the call stack of a fiber that has run for too much real time without "
    "waiting") {
  const weft::test::TestGuard guard("a fiber that never waits is reported");
  const int file = memfd_create("stderr", MFD_CLOEXEC);
  const int before = dup(STDERR_FILENO);
  dup2(file, STDERR_FILENO);
  std::string text;
  sim::run(
      [&] {
        // The fiber runs until a report has its calls, which a loaded machine may leave out of the
        // first ones. A sanitized build has none.
        const char* const last = weft::test::kSanitized ? " is running" : "\n    at ";
        while (text.find(last) == std::string::npos) {
          text.assign(65536, ' ');
          const ssize_t size = pread(file, text.data(), text.size(), 0);
          text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
        }
      },
      {.first_seed = 3, .patience = 1ms});
  dup2(before, STDERR_FILENO);
  close(before);
  close(file);
  CHECK(
      text.starts_with("weft::sim: in the run of WEFT_SIM_SEED=3 a fiber has run for 0.001 000 s "
                       "of real time without a wait\n"));
  CHECK(text.find("\n  fiber ") != std::string::npos);
  CHECK(text.find(" is running; runs ") != std::string::npos);
}

TEST_SUITE_END();
