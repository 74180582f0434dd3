#include "libs/sim/schedule.hpp"

#include <algorithm>
#include <array>

namespace weft::sim {

namespace {

// Schedules use the seed's stream with this number. core.cpp has the numbers of other streams.
constexpr std::uint64_t kScheduleStream = 1;

// Returns the index of the fiber that could continue to run, or -1.
std::ptrdiff_t find_running(std::span<const Candidate> ready) noexcept {
  const auto found = std::ranges::find(ready, true, &Candidate::goes_on);
  return found == ready.end() ? -1 : found - ready.begin();
}

class RandomSchedule final : public Schedule {
 public:
  void begin(std::uint64_t seed, const Plan& plan) override {
    // Some faults need many preemptions and some need none, so runs differ in the chance of a
    // preemption.
    constexpr std::array<double, 4> kChances{0, 0.02, 0.15, 0.5};
    chance_ = Chance(seed, kScheduleStream);
    preemption_ = kChances[chance_.below(kChances.size())];
    plan_ = &plan;
    has_ended_turn_ = false;
    turn_ = 0;
    preemptions_ = 0;
  }
  std::size_t choose(std::span<const Candidate> ready) override {
    const std::size_t drawn = chance_.next() % ready.size();
    ++turn_;
    // A fiber that has yielded lets other fibers run anyway, as it may wait for them.
    if (!has_ended_turn_ || ready[drawn].goes_on || !omits_preemption()) return drawn;
    const std::ptrdiff_t running = find_running(ready);
    return running >= 0 ? static_cast<std::size_t>(running) : drawn;
  }
  bool ends_turn() noexcept override {
    has_ended_turn_ = chance_.is_true(preemption_) && turn_ < plan_->last_preemption;
    return has_ended_turn_;
  }
  [[nodiscard]] std::uint64_t drawn_preemptions() const noexcept override { return preemptions_; }

 private:
  // Counts the preemption that begins this turn, unless the plan omits all from this turn on. An
  // omitted preemption changes no later draw.
  bool omits_preemption() noexcept {
    if (turn_ >= plan_->last_preemption) return true;
    const std::uint64_t number = preemptions_++;
    const std::vector<bool>& left_out = plan_->left_out_preemptions;
    return number < left_out.size() && left_out[number];
  }

  const Plan* plan_ = nullptr;
  Chance chance_{0, 0};
  double preemption_ = 0;
  bool has_ended_turn_ = false;
  std::uint64_t turn_ = 0;
  std::uint64_t preemptions_ = 0;
};

// The algorithm is described in S. Burckhardt et al., "A randomized scheduler with probabilistic
// guarantees of finding bugs".
class PrioritySchedule final : public Schedule {
 public:
  explicit PrioritySchedule(unsigned depth) : changes_(depth > 0 ? depth - 1 : 0) {}

  void begin(std::uint64_t seed, const Plan& plan) override {
    constexpr std::array<std::uint64_t, 4> kLengths{30, 300, 3'000, 30'000};
    chance_ = Chance(seed, kScheduleStream);
    // The length of the run is unknown. The seed therefore draws one of these lengths, and the
    // turns within that length at which priorities change.
    const std::uint64_t length = kLengths[chance_.below(kLengths.size())];
    turn_ = 0;
    lowest_ = kLowest;
    in_a_row_ = 0;
    places_.clear();
    for (unsigned i = 0; i < changes_; ++i) {
      const std::uint64_t place = 1 + chance_.below(length);
      if (place < plan.last_preemption) places_.push_back(place);
    }
  }
  // The result is above the priorities that a change assigns.
  std::uint64_t priority() noexcept override { return kLowest + 1 + chance_.next() / 2; }
  std::size_t choose(std::span<const Candidate> ready) override {
    ++turn_;
    std::size_t best = find_best(ready);
    // A fiber that waits for other fibers by yielding must eventually let them run.
    in_a_row_ = ready[best].goes_on ? in_a_row_ + 1 : 0;
    if (in_a_row_ > kMostInARow || std::ranges::find(places_, turn_) != places_.end()) {
      in_a_row_ = 0;
      ready[best].actor->priority = lowest_--;
      best = find_best(ready);
    }
    return best;
  }
  bool ends_turn() noexcept override { return true; }

 private:
  static constexpr std::uint64_t kLowest = std::uint64_t{1} << 62;
  static constexpr unsigned kMostInARow = 64;

  static std::size_t find_best(std::span<const Candidate> ready) noexcept {
    const auto less = [](const Candidate& a, const Candidate& b) {
      return a.actor->priority != b.actor->priority ? a.actor->priority < b.actor->priority
                                                    : a.actor->number > b.actor->number;
    };
    return static_cast<std::size_t>(std::ranges::max_element(ready, less) - ready.begin());
  }

  const unsigned changes_;
  Chance chance_{0, 0};
  std::uint64_t turn_ = 0;
  std::uint64_t lowest_ = kLowest;
  unsigned in_a_row_ = 0;
  std::vector<std::uint64_t> places_;
};

// Searches depth first. A run repeats the decisions of the previous run up to the last decision
// with an untried choice. It takes that choice, and makes later decisions without preemptions.
class ExhaustiveSchedule final : public Schedule {
 public:
  explicit ExhaustiveSchedule(unsigned max_preemptions) : max_preemptions_(max_preemptions) {}

  void begin(std::uint64_t, const Plan&) override { position_ = 0; }
  std::size_t choose(std::span<const Candidate> ready) override {
    const std::ptrdiff_t running = find_running(ready);
    if (position_ == decisions_.size()) {
      decisions_.push_back({0, static_cast<std::uint32_t>(ready.size()), running >= 0});
    }
    const std::size_t wanted = decisions_[position_++].choice;
    // The first choice is the fiber that could continue to run; the other fibers follow in their
    // order.
    const auto usual = static_cast<std::size_t>(std::max<std::ptrdiff_t>(running, 0));
    if (wanted == 0) return usual;
    return std::min(wanted <= usual ? wanted - 1 : wanted, ready.size() - 1);
  }
  bool ends_turn() noexcept override { return true; }
  bool has_more() noexcept override {
    decisions_.resize(position_);
    while (!decisions_.empty()) {
      Decision& last = decisions_.back();
      if (last.choice + 1 < last.count &&
          (!last.preempts || preemptions() < max_preemptions_ || last.choice > 0)) {
        ++last.choice;
        return true;
      }
      decisions_.pop_back();
    }
    return false;
  }

 private:
  struct Decision {
    std::uint32_t choice;
    std::uint32_t count;
    bool preempts;  // Whether each choice except the first is a preemption.
  };
  [[nodiscard]] std::size_t preemptions() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        decisions_, [](const Decision& each) { return each.preempts && each.choice > 0; }));
  }

  const unsigned max_preemptions_;
  std::vector<Decision> decisions_;
  std::size_t position_ = 0;
};

}  // namespace

std::unique_ptr<Schedule> make_schedule(const Options& options) {
  switch (options.strategy) {
    case Strategy::random:
      break;
    case Strategy::priorities:
      return std::make_unique<PrioritySchedule>(options.depth);
    case Strategy::exhaustive:
      return std::make_unique<ExhaustiveSchedule>(options.max_preemptions);
  }
  return std::make_unique<RandomSchedule>();
}

}  // namespace weft::sim
