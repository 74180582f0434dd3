#include "tests/support/random.hpp"

#include <cstdlib>
#include <ostream>
#include <random>

#include "tests/support/listener.hpp"

namespace weft::test {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

// Prints the seed under each failed test. doctest calls it also when a test has crashed.
class SeedReporter final : public Listener {
 public:
  explicit SeedReporter(const doctest::ContextOptions& options) : out_(*options.cout) {}

  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (!stats.testCaseSuccess)
      out_ << "to repeat its random numbers: WEFT_TEST_SEED=" << test_seed() << std::endl;
  }

 private:
  std::ostream& out_;
};

REGISTER_LISTENER("seed", 1, SeedReporter);

}  // namespace

std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* text = std::getenv("WEFT_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
  }();
  return seed;
}

Random::Random(std::uint64_t stream) : state_(test_seed() + stream * 0xd1342543de82ef95) {
  (*this)();
}

// SplitMix64: any state is good, so neighbouring streams need no warm-up.
Random::result_type Random::operator()() noexcept {
  state_ += kGolden;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

unsigned drawn_workers(std::uint64_t stream) {
  return 1 + static_cast<unsigned>(Random(stream).below(17));
}

}  // namespace weft::test
