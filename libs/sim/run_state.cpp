#include "libs/sim/run_state.hpp"

#include <stdexcept>
#include <system_error>
#include <utility>

#include "libs/sim/shelter.hpp"

namespace weft::sim {

namespace {

// Hosts use the seed's streams from this number on. core.cpp has the numbers of other streams.
constexpr std::uint64_t kFirstHostStream = 1000;
// Failing calls use streams from this number on, above the streams of the network and the disks.
constexpr std::uint64_t kFirstFailureStream = std::uint64_t{1} << 63;

}  // namespace

RunState::RunState(const Options& options, std::uint64_t seed, const Plan& plan,
                   const detail::Simulation& simulation)
    : options_(options),
      seed_(seed),
      plan_(plan),
      simulation_(simulation),
      beginning_(simulation.now()),
      story_(options.story_rows) {
  add_host("world", nullptr);
}

// --- Hosts ---

void RunState::add_host(std::string_view name, std::function<void()> main) {
  const Shelter shelter(this);
  const auto number = static_cast<std::uint32_t>(hosts_.size());
  if (name.empty() || !numbers_.try_emplace(std::string(name), number).second) {
    throw std::invalid_argument("weft::sim::World::host(): name = '" + std::string(name) +
                                "'; must be unused and not empty");
  }
  auto host = std::make_unique<Host>(Host{.clock{beginning_, beginning_},
                                          .failure_chance{seed_, kFirstFailureStream + number},
                                          .chance{seed_, kFirstHostStream + number}});
  host->name = name;
  host->main = std::move(main);
  host->life = new_life();
  host->state = number == 0 ? HostState::up : HostState::down;
  hosts_.push_back(std::move(host));
}

std::optional<std::uint32_t> RunState::try_find_host(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t RunState::find_host(std::string_view name) const {
  if (const auto found = try_find_host(name)) return *found;
  throw std::invalid_argument("weft::sim: there is no host '" + std::string(name) +
                              "'; add it by World::host()");
}

std::vector<std::string> RunState::host_names() const {
  std::vector<std::string> names;
  for (const auto& host : hosts_) names.push_back(host->name);
  return names;
}

// --- The story and the end ---

void RunState::note(std::uint32_t host, std::string text) {
  const Shelter shelter(this);
  story_.add(elapsed(), host, std::move(text));
}

bool RunState::begin() noexcept {
  if (phase_ != Phase::before) return false;
  phase_ = Phase::running;
  return true;
}

void RunState::fail(std::string reason) noexcept {
  const Shelter shelter(this);
  if (phase_ == Phase::over) return;
  story_.add(elapsed(), current_host_, "FAILED");
  failure_ = std::move(reason);
  end();
}

void RunState::end() noexcept {
  if (std::exchange(phase_, Phase::over) != Phase::over) over_.release();
}

// --- Calls that fail ---

bool RunState::is_failure_due(double chance) noexcept {
  if (chance <= 0 || !is_running()) return false;
  if (!here().failure_chance.is_true(chance)) return false;
  return ++failures_ <= plan_.most_failures;
}

int RunState::draw_error(double chance, const char* call, std::span<const int> errors) noexcept {
  if (!is_failure_due(chance)) return 0;
  const Shelter shelter(this);
  const int error = errors[here().failure_chance.below(errors.size())];
  note(current_host_,
       std::string(call) + "() fails: " + std::error_code(error, std::system_category()).message());
  return error;
}

}  // namespace weft::sim
