#include "tests/support/sim_test.hpp"

#include <atomic>
#include <cstdlib>
#include <string>

#include "tests/support/listener.hpp"

namespace weft::test {

namespace {

std::atomic<std::uint64_t> failures{0};

// doctest notifies only a listener that a check has failed.
struct FailureCounter final : Listener {
  explicit FailureCounter(const doctest::ContextOptions&) {}
  void log_assert(const doctest::AssertData& assertion) override {
    if (assertion.m_failed) ++failures;
  }
  void log_message(const doctest::MessageData& message) override {
    if (message.m_severity != doctest::assertType::is_warn) ++failures;
  }
};

REGISTER_LISTENER("failures", 1, FailureCounter);

}  // namespace

std::uint64_t sim_seeds() {
  if (const char* text = std::getenv("WEFT_TEST_SIM_SEEDS"))
    return std::strtoull(text, nullptr, 10);
  return kSlowdown > 1 ? 2 : 5;
}

void run_sim_test(const char* sentence, SimBody body, const SimSetup& setup) {
#ifdef WEFT_TSAN_NO_SYNC
  return;  // Only the simulation's one thread orders its state.
#endif
  const TestGuard guard(sentence);
  for (const unsigned workers : setup.workers) {
    sim::Options options = setup.options;
    options.workers = workers;
    options.has_failed = [before = failures.load()] { return failures != before; };
    try {
      (void)sim::explore(options, [body](sim::World& world) { body(world); });
    } catch (const sim::Failure& failure) {
      FAIL_CHECK("with Options::workers = ", workers, ", ", std::string(failure.what()));
      return;
    }
  }
}

}  // namespace weft::test
