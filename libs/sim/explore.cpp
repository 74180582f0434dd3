// Runs of many seeds, and the shortening of a failing run.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <weft/detail/thread_mutex.hpp>
#include <weft/sim.hpp>

#include "libs/sim/core.hpp"
#include "libs/sim/races.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

namespace {

struct Outcome {
  std::optional<std::string> failure;
  std::string story;
  std::string trace;
  std::uint64_t turns = 0;
  std::int64_t elapsed = 0;
  std::uint64_t faults = 0;
  bool has_lost_any = false;
  std::uint64_t failures = 0;     // The number of calls that were drawn to fail.
  std::uint64_t preemptions = 0;  // Schedule::drawn_preemptions().
};

using Body = std::function<void(World&)>;

// Only one world runs at a time, as the process has a single simulated clock.
detail::ThreadMutex world_mutex;

Outcome outcome_of(Core& core) {
  const RunState& run = core.state();
  return {.failure = run.failure(),
          .story = run.story(),
          .trace = run.failure() ? run.trace() : "",
          .turns = core.turns(),
          .elapsed = run.elapsed(),
          .faults = core.disturbances().count(),
          .has_lost_any = core.wires().has_lost_any(),
          .failures = run.failures()};
}

Outcome run_once(const Options& options, std::uint64_t seed, const Plan& plan, Schedule& schedule,
                 const Body& body) {
  Core core(options, seed, plan, schedule);
  core.run(body);
  Outcome outcome = outcome_of(core);
  outcome.preemptions = schedule.drawn_preemptions();
  return outcome;
}

// Returns the first line without its numbers. Two runs with the same line fail in the same way.
std::string kind_of(const std::string& reason) {
  std::string kind = reason.substr(0, reason.find('\n'));
  std::erase_if(kind, [](char letter) { return letter >= '0' && letter <= '9'; });
  return kind;
}

// Reduces a failing run to what it needs to fail in the same way.
class Shrinker {
 public:
  Shrinker(const Options& options, std::uint64_t seed, const Body& body, Outcome& outcome)
      : options_(options), seed_(seed), body_(body), outcome_(outcome) {}

  // Returns a description of the shortened run. Afterwards `outcome_` describes that run.
  std::string shrink() {
    const std::uint64_t faults = outcome_.faults;
    std::string text;
    if (outcome_.has_lost_any) {
      Plan plan = plan_;
      plan.is_silent = true;
      text.append(attempt(plan) ? "no losses are needed; " : "losses are needed; ");
    }
    if (outcome_.failures > 0) text.append(shrink_failures());
    if (faults > 0) {
      text.append(std::to_string(leave_out(&Plan::left_out, faults))).append(" of ");
      text.append(std::to_string(faults)).append(" faults are needed; ");
    }
    return text.append(shrink_time()).append(shrink_preemptions());
  }

 private:
  // Omits large groups of items first, then smaller groups, until every remaining item is needed or
  // the turns of the attempts exceed `budget`. Returns how many items are left.
  std::uint64_t leave_out(std::vector<bool> Plan::*items, std::uint64_t count,
                          std::uint64_t budget = kAnyTurns) {
    (plan_.*items).resize(count);
    const std::uint64_t most = budget == kAnyTurns ? budget : turns_ + budget;
    bool has_changed = true;
    for (std::uint64_t size = count; size > 0; size = has_changed && size == 1 ? 1 : size / 2) {
      has_changed = false;
      for (std::uint64_t begin = 0; begin < count && turns_ < most; begin += size) {
        Plan plan = plan_;
        for (std::uint64_t i = begin; i < std::min(begin + size, count); ++i) {
          (plan.*items)[i] = true;
        }
        if (plan.*items != plan_.*items && attempt(plan)) has_changed = true;
      }
    }
    return static_cast<std::uint64_t>(std::ranges::count(plan_.*items, false));
  }
  std::string shrink_failures() {
    const std::uint64_t all = outcome_.failures;
    Plan plan = plan_;
    plan.most_failures = 0;
    if (attempt(plan)) return "no failing call is needed; ";
    std::uint64_t fails_not = 0;
    std::uint64_t fails = all;
    while (fails - fails_not > 1) {
      plan.most_failures = fails_not + (fails - fails_not) / 2;
      (attempt(plan) ? fails : fails_not) = plan.most_failures;
    }
    return std::to_string(fails) + " of " + std::to_string(all) + " failing calls are needed; ";
  }
  // Runs the seed again with the least latencies, and with faults that come early and are brief.
  // Another seed could have drawn the same values. The body's own waits remain: a check that comes
  // too early could fail for another reason.
  std::string shrink_time() {
    const std::int64_t before = outcome_.elapsed;
    Plan plan = plan_;
    plan.is_quick = true;
    (void)attempt_sooner(plan);
    plan_.divisors.resize(outcome_.faults, 1);
    for (bool is_sooner = outcome_.faults > 0; is_sooner;) {
      plan = plan_;
      for (std::int64_t& divisor : plan.divisors) divisor *= 2;
      is_sooner = attempt_sooner(plan);
    }
    // Each divisor is doubled separately.
    bool has_changed = true;
    for (int pass = 0; pass < kPasses && has_changed; ++pass) {
      has_changed = false;
      for (std::size_t i = 0; i < plan_.divisors.size(); ++i) {
        if (i < plan_.left_out.size() && plan_.left_out[i]) continue;
        plan = plan_;
        plan.divisors[i] *= 2;
        if (attempt_sooner(plan)) has_changed = true;
      }
    }
    if (outcome_.elapsed == before) return {};
    return "it fails after " + seconds_text(outcome_.elapsed) + " instead of " +
           seconds_text(before) + "; ";
  }
  std::string shrink_preemptions() {
    const std::uint64_t turns = outcome_.turns;
    Plan plan = plan_;
    plan.last_preemption = 0;
    if (attempt(plan)) return "no preemption is needed";
    std::uint64_t fails_not = 0;
    std::uint64_t fails = turns + 1;
    while (fails - fails_not > 1) {
      plan.last_preemption = fails_not + (fails - fails_not) / 2;
      (attempt(plan) ? fails : fails_not) = plan.last_preemption;
    }
    const std::string last = std::to_string(fails - 1) + " of " + std::to_string(turns);
    if (outcome_.preemptions == 0) return "the last change that is needed is in turn " + last;
    (void)leave_out(&Plan::left_out_preemptions, outcome_.preemptions, kBudget);
    // A run without some of its preemptions may have other preemptions.
    plan_.left_out_preemptions.resize(outcome_.preemptions);
    const auto left = std::ranges::count(plan_.left_out_preemptions, false);
    if (left == 0) return "no preemption is needed";
    if (left == 1) return "1 preemption is needed, in turn " + last;
    return std::to_string(left) + " preemptions are needed, the last one in turn " + last;
  }
  // Returns whether the run fails with this plan, too. If it fails, later attempts shorten that
  // run.
  bool attempt(const Plan& plan) { return attempt_within(plan, kAnyTime); }
  // Does the same, but accepts the plan only if the run fails sooner.
  bool attempt_sooner(const Plan& plan) { return attempt_within(plan, outcome_.elapsed); }
  bool attempt_within(const Plan& plan, std::int64_t limit) {
    const auto schedule = make_schedule(options_);
    Outcome outcome = run_once(options_, seed_, plan, *schedule, body_);
    turns_ += outcome.turns;
    if (!outcome.failure || kind_of(*outcome.failure) != kind_of(*outcome_.failure) ||
        outcome.elapsed >= limit) {
      return false;
    }
    plan_ = plan;
    outcome_ = std::move(outcome);
    return true;
  }

  static constexpr int kPasses = 10;
  static constexpr std::int64_t kAnyTime = std::numeric_limits<std::int64_t>::max();
  static constexpr std::uint64_t kAnyTurns = std::numeric_limits<std::uint64_t>::max();
  // The turns of all attempts to omit preemptions. Turns, unlike seconds, are the same everywhere.
  static constexpr std::uint64_t kBudget = 2'000'000;

  const Options& options_;
  const std::uint64_t seed_;
  const Body& body_;
  Outcome& outcome_;
  Plan plan_;
  std::uint64_t turns_ = 0;  // The turns of all attempts.
};

// Returns the seed in the environment, or nothing.
std::optional<std::uint64_t> wanted_seed() {
  const char* text = std::getenv("WEFT_SIM_SEED");
  if (text == nullptr || *text == 0) return std::nullopt;
  std::uint64_t seed = 0;
  const char* end = text + std::strlen(text);
  if (const auto [stop, error] = std::from_chars(text, end, seed);
      error != std::errc{} || stop != end) {
    throw std::invalid_argument("weft::sim: the environment variable WEFT_SIM_SEED = " +
                                std::string(text) + "; must be a number");
  }
  return seed;
}

Options resolve(Options options) {
  if (options.strategy == Strategy::exhaustive) options.seeds = 1;
  if (const auto seed = wanted_seed()) {
    options.first_seed = *seed;
    options.seeds = 1;
  }
  if (options.turn_time.count() < 0 || options.grace.count() < 0 ||
      options.starvation.count() < 0) {
    throw std::invalid_argument(
        "weft::sim::Options: turn_time, grace or starvation < 0; must be >= 0");
  }
  if (options.patience.count() <= 0) {
    throw std::invalid_argument("weft::sim::Options: patience <= 0; must be > 0");
  }
  // The bound prevents an overflow of moments.
  constexpr std::chrono::hours kCentury(24 * 366 * 100);
  options.starvation = std::min<std::chrono::nanoseconds>(options.starvation, kCentury);
  return options;
}

void begin_alone() {
  if (detail::is_simulated()) {
    throw std::logic_error(
        "weft::sim: explore() was called inside a simulation; call it from a plain thread");
  }
}

void add_to(Report& report, const Outcome& outcome) {
  ++report.runs;
  report.turns += outcome.turns;
  report.simulated += std::chrono::nanoseconds(outcome.elapsed);
}

void write_trace(const char* file, const std::string& trace) {
  std::ofstream out(file);
  if (!(out << trace).flush()) {
    throw std::runtime_error("weft::sim: the environment variable WEFT_SIM_TRACE = " +
                             std::string(file) + "; must be a file that can be written");
  }
}

// Throws Failure if the run has failed.
void judge(const Options& options, std::uint64_t seed, const Body& body, Outcome outcome) {
  if (!outcome.failure && options.has_failed && options.has_failed()) {
    throw Failure(seed, "Options::has_failed returned true", outcome.story);
  }
  if (!outcome.failure) return;
  std::string note;
  // The sanitizer reports each race once in a process, so a shortened run would seem to have none.
  const bool is_race = outcome.failure->starts_with(kRaceFound);
  if (options.shrinks && options.strategy != Strategy::exhaustive && !is_race) {
    note = "\nShortened: " + Shrinker(options, seed, body, outcome).shrink() + ".";
  }
  if (const char* file = std::getenv("WEFT_SIM_TRACE")) write_trace(file, outcome.trace);
  throw Failure(seed, *outcome.failure + note, outcome.story);
}

std::string sentence_of(std::uint64_t seed, const std::string& reason, const std::string& story) {
  const std::string number = std::to_string(seed);
  return "weft::sim: seed " + number + " fails: " + reason + "\nWEFT_SIM_SEED=" + number +
         " in the environment runs it alone.\n" + story;
}

}  // namespace

Failure::Failure(std::uint64_t seed, std::string reason, std::string story)
    : std::runtime_error(sentence_of(seed, reason, story)),
      seed_(seed),
      reason_(std::move(reason)),
      story_(std::move(story)) {}

Report explore(const Options& given, const Body& body) {
  begin_alone();
  const detail::Guard lock(world_mutex);
  const Options options = resolve(given);
  const auto schedule = make_schedule(options);
  Report report;
  for (std::uint64_t i = 0; i < options.seeds; ++i) {
    const std::uint64_t seed = options.first_seed + i;
    for (bool has_more = true; has_more;) {
      Outcome outcome = run_once(options, seed, {}, *schedule, body);
      add_to(report, outcome);
      judge(options, seed, body, std::move(outcome));
      has_more = schedule->has_more();
      if (has_more && report.runs >= options.max_schedules) {
        report.is_complete = false;
        break;
      }
    }
  }
  return report;
}

void run(const std::function<void()>& body, Options options) {
  options.seeds = 1;
  (void)explore(options, [&body](World&) { body(); });
}

Report check_determinism(const Options& given, const Body& body) {
  begin_alone();
  const detail::Guard lock(world_mutex);
  const Options options = resolve(given);
  Report report;
  const Plan plan;
  for (std::uint64_t i = 0; i < options.seeds; ++i) {
    const std::uint64_t seed = options.first_seed + i;
    const auto schedule = make_schedule(options);
    Core first(options, seed, plan, *schedule);
    first.decisions().keep();
    first.run(body);
    if (first.state().failure())
      throw Failure(seed, *first.state().failure(), first.state().story());
    const auto decisions = first.decisions().take();
    const auto same_schedule = make_schedule(options);
    Core second(options, seed, plan, *same_schedule);
    second.decisions().expect(decisions);
    second.run(body);
    if (second.state().failure())
      throw Failure(seed, *second.state().failure(), second.state().story());
    if (first.state().story() != second.state().story()) {
      throw Failure(seed,
                    "the stories of two runs of one seed differ; the first story was\n" +
                        first.state().story(),
                    second.state().story());
    }
    add_to(report, outcome_of(first));
  }
  return report;
}

}  // namespace weft::sim
