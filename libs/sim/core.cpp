#include "libs/sim/core.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "libs/sim/disks.hpp"
#include "libs/sim/events.hpp"
#include "libs/sim/faults.hpp"
#include "libs/sim/leaks.hpp"
#include "libs/sim/races.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

namespace {

// Numbers of streams of a seed. The schedule has stream 1.
constexpr std::uint64_t kRandomStream = 2;
constexpr std::uint64_t kDisturbanceStream = 3;

// The world that runs; there is one at a time. The plain thread writes it before the worker starts,
// and after the worker has ended.
constinit Core* running_core = nullptr;

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception of another type than std::exception";
  }
}

}  // namespace

Core::Core(const Options& options, std::uint64_t seed, const Plan& plan, Schedule& schedule)
    : options_(options),
      seed_(seed),
      plan_(plan),
      schedule_(schedule),
      random_(seed, kRandomStream),
      disturbance_(seed, kDisturbanceStream),
      story_(options.story_rows),
      watch_(options),
      disks_(std::make_unique<Disks>(*this, seed)),
      wires_(std::make_unique<Wires>(*this, seed, plan)),
      kernel_(std::make_unique<CallFaultsKernel>(*this)) {
  add_host("world", nullptr);
  schedule_.begin(seed, plan.last_preemption);
}

// The plain thread destroys here what the worker's fibers have used.
Core::~Core() {
  begin_unwatched();
  kernel_.reset();
  wires_.reset();
  disks_.reset();
  end_unwatched();
}

Core* Core::find() noexcept { return detail::is_simulated() ? running_core : nullptr; }

Core& Core::here() {
  if (Core* core = find()) return *core;
  throw std::logic_error(
      "weft::sim: this call requires a fiber of a simulation; make it in the body of explore()");
}

// --- The plain thread ---

void Core::run(const std::function<void(World&)>& body) {
  running_core = this;
  io::Kernel::install(kernel_.get());
  stage_ = std::make_unique<detail::Stage>(*this, wires_->events(), options_.stack_size);
  stage_->spawn(detail::Task([this, &body] { run_body(body); }));
  wait_for_end();
  stage_.reset();
  detail::Stage::learn_of_all_fibers();
  set_allocation_hook(nullptr);
  io::Kernel::install(nullptr);
  running_core = nullptr;
}

// A fiber that computes forever keeps a world from its end, which only this function reports.
void Core::wait_for_end() {
  for (std::uint64_t before = 0; !over_.try_acquire_for(options_.patience);) {
    const std::uint64_t now = turns();
    if (now == before && now != 0) {
      const std::string text = "weft::sim: in the run of WEFT_SIM_SEED=" + std::to_string(seed_) +
                               " a fiber has run for " + seconds_text(options_.patience.count()) +
                               " of real time without a wait\n" + stage_->describe_running();
      (void)std::fwrite(text.data(), 1, text.size(), stderr);
    }
    before = now;
  }
}

std::vector<std::string> Core::host_names() const {
  std::vector<std::string> names;
  for (const auto& host : hosts_) names.push_back(host->name);
  return names;
}

std::string Core::story() const { return story_.table(host_names()); }
std::string Core::trace() const { return story_.trace(host_names()); }

bool Core::has_lost_any() const noexcept { return wires_->has_lost_any(); }

// --- The body ---

void Core::run_body(const std::function<void(World&)>& body) {
  World world(*this);
  try {
    body(world);
    if (phase_ == Phase::running) demand_end(0);
    // No later turn looks for a race.
    if (phase_ == Phase::running && watch_.has_race()) {
      fail(std::string(kRaceFound) + "\n" + stage_->describe());
    }
  } catch (...) {
    fail("the body threw: " + text_of(std::current_exception()));
  }
  end();
}

void Core::demand_end(std::uint32_t number) {
  const Host& host = *hosts_[number];
  const bool is_world = number == 0;
  const std::uint64_t own = is_world ? 1 : 0;  // The body itself waits here.
  const Deadline limit = Deadline::after(options_.grace);
  std::chrono::nanoseconds pause = std::chrono::microseconds(100);
  while (host.actors > own && !limit.passed()) {
    this_fiber::sleep_for(pause);
    pause = std::min<std::chrono::nanoseconds>(2 * pause, std::chrono::seconds(1));
  }
  if (phase_ != Phase::running) return;
  const std::string whose = is_world ? "the body" : "'" + host.name + "'";
  if (host.actors > own) {
    fail(std::to_string(host.actors - own) + " fibers that " + whose +
         " has spawned are left after its end and Options::grace\n" + stage_->describe());
  } else if (const std::size_t open = wires_->open_sockets(number) + disks_->open_files(number);
             open > 0) {
    fail(std::to_string(open) + " descriptors that " + whose +
         " has opened are open after its end");
  }
}

void Core::fail(std::string reason) noexcept {
  const Shelter shelter(this);
  if (phase_ == Phase::over) return;
  story_.add(elapsed(), current_host_, "FAILED");
  failure_ = std::move(reason);
  end();
}

void Core::end() noexcept {
  if (std::exchange(phase_, Phase::over) != Phase::over) over_.release();
}

void Core::leave_for_ever() noexcept {
  for (;;) detail::park({[](void*) noexcept {}, nullptr}, detail::WaitReason::sleep);
}

// --- Fibers ---

void Core::spawned(fibers::Fiber& fiber) noexcept {
  const Shelter shelter(this);
  const std::uint32_t number = spawn_host_.value_or(current_host_);
  Host& host = *hosts_[number];
  const bool is_helper = spawns_helper_ || (current_is_helper_ && !spawn_host_);
  actors_.insert_or_assign(&fiber,
                           Actor{++spawns_, schedule_.priority(), number, host.life, is_helper});
  if (!is_helper) ++host.actors;
}

void Core::ready(fibers::Fiber& fiber) noexcept {
  const Shelter shelter(this);
  if (phase_ == Phase::before) {
    phase_ = Phase::running;
    ignore_leaks_of_this_thread();
    woken_from_outside_.store(nullptr, detail::relaxed);  // The plain thread has spawned the body.
  } else if (&fiber == woken_from_outside_.load(detail::relaxed)) {
    woken_from_outside_.store(nullptr, detail::relaxed);
    if (!wires_->events().lets_in_threads()) return refuse_wake(fiber);
  }
  auto found = actors_.find(&fiber);
  if (found == actors_.end()) {
    spawned(fiber);
    found = actors_.find(&fiber);
  }
  Actor& actor = found->second;
  if (is_dead(actor)) return;
  Host& host = *hosts_[actor.host];
  if (host.state == HostState::stopped) {
    host.held.push_back(&fiber);
    return;
  }
  const bool goes_on = &fiber == running_;
  if (goes_on) resumable_ = ready_.size();
  ready_.push_back({&fiber, &actor, goes_on, now_});
}

fibers::Fiber* Core::take(bool& ends_turn) noexcept {
  const Shelter shelter(this);
  if (ready_.empty() || phase_ != Phase::running) return nullptr;
  if (!watch_.begin_turn()) {
    fail("fibers have had Options::max_turns turns, and the body has not returned\n" +
         stage_->describe());
  } else if (const Candidate* starving = watch_.find_starving(ready_, now_)) {
    fail("a fiber of '" + hosts_[starving->actor->host]->name + "' starves: it was ready for " +
         seconds_text(now_ - starving->ready_since) + " without a turn\n" +
         stage_->describe(*starving->fiber) + stage_->describe());
  } else if (watch_.has_race()) {
    fail(std::string(kRaceFound) + "\n" + stage_->describe());
  }
  if (phase_ != Phase::running) return nullptr;
  const std::size_t index = choose();
  if (index == kNone) return nullptr;
  if (resumable_ < ready_.size()) ready_[resumable_].goes_on = false;
  resumable_ = kNone;
  const Candidate chosen = ready_[index];
  if (ready_.size() > 1) decide({chosen.actor->number, ready_.size()});
  ready_[index] = ready_.back();
  ready_.pop_back();
  running_ = chosen.fiber;
  current_host_ = chosen.actor->host;
  current_is_helper_ = chosen.actor->is_helper;
  ends_turn = ended_turn_ = schedule_.ends_turn();
  now_ += options_.turn_time.count();
  return chosen.fiber;
}

void Core::ended(fibers::Fiber& fiber) noexcept {
  const Shelter shelter(this);
  const auto found = actors_.find(&fiber);
  if (found == actors_.end()) return;
  const Actor& actor = found->second;
  if (!is_dead(actor) && !actor.is_helper) --hosts_[actor.host]->actors;
  actors_.erase(found);
  running_ = nullptr;
}

void Core::woken_from_outside(fibers::Fiber& fiber) noexcept {
  woken_from_outside_.store(&fiber, detail::relaxed);
}

void Core::refuse_wake(const fibers::Fiber& fiber) noexcept {
  fail(
      "a plain thread woke a fiber: this is refused in a simulation, as the seed does not decide "
      "when; World::let_in(\"thread\") admits it\n" +
      stage_->describe(fiber));
}

void Core::failed(std::exception_ptr failure) noexcept {
  const Shelter shelter(this);
  fail("an exception left a fiber of '" + hosts_[current_host_]->name + "': " + text_of(failure));
}

void Core::panicked() noexcept {
  const std::string text =
      "weft::sim: in the run of WEFT_SIM_SEED=" + std::to_string(seed_) + ", after\n" + story();
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

std::uint64_t Core::random() noexcept {
  const std::uint64_t value = random_.next();
  decide({~std::uint64_t{0}, value});
  return value;
}

void Core::decide(Decision decision) noexcept {
  const Shelter shelter(this);
  const auto difference = decisions_.add(decision);
  if (difference && phase_ == Phase::running) fail(*difference + "\n" + stage_->describe());
}

void Core::spawn_helper(std::function<void()> action) {
  const Shelter shelter(this);
  spawns_helper_ = true;
  go(std::move(action));
  spawns_helper_ = false;
}

// --- Time ---

std::size_t Core::pass_time(Deadline next) noexcept {
  if (settler_) {
    detail::wake(std::exchange(settler_, {}));
    return 1;
  }
  if (next.is_never()) {
    if (wires_->events().may_hear_from_outside()) return 0;
    fail("deadlock: nothing can happen any more, and the body has not returned\n" +
         stage_->describe());
    return 0;
  }
  if (next.nanoseconds() - kBeginning > options_.time_limit.count()) {
    fail("the world has lasted longer than Options::time_limit\n" + stage_->describe());
    return 0;
  }
  now_ = std::max(now_, next.nanoseconds());
  return 0;
}

Deadline Core::next_timer() const noexcept { return stage_->next_timer(); }

void Core::settle() {
  if (settler_)
    throw std::logic_error(
        "weft::sim::settle(): another fiber already waits in settle(); call it from one fiber at a "
        "time");
  detail::park({[](void* core) noexcept {
                  auto& self = *static_cast<Core*>(core);
                  self.settler_ = detail::Waker::of_fiber(self.running_);
                },
                this},
               detail::WaitReason::sleep);
  detail::Stage::learn_of_all_fibers();
}

void Core::note(std::uint32_t host, std::string text) {
  const Shelter shelter(this);
  story_.add(elapsed(), host, std::move(text));
}

// --- Calls that fail ---

void Core::fail_calls(std::uint32_t number, const CallFaults& faults) {
  if (faults.memory > 0 && number == 0) {
    throw std::invalid_argument(
        "weft::sim::CallFaults::memory: the host is the world itself; must be another host");
  }
  if (faults.memory > 0 && !has_own_allocator()) {
    throw std::logic_error(
        "weft::sim::CallFaults::memory: the program has an operator new of its own; must be 0");
  }
  hosts_[number]->faults = faults;
  if (faults.memory > 0) {
    set_allocation_hook([]() noexcept {
      Core* core = find();
      return core != nullptr && core->allocation_fails();
    });
  }
}

bool Core::is_failure_due(double chance) noexcept {
  if (chance <= 0 || phase_ != Phase::running) return false;
  if (!hosts_[current_host_]->failure_chance.is_true(chance)) return false;
  return ++failures_ <= plan_.most_failures;
}

int Core::draw_error(double chance, const char* call, std::span<const int> errors) noexcept {
  if (!is_failure_due(chance)) return 0;
  const Shelter shelter(this);
  const int error = errors[hosts_[current_host_]->failure_chance.below(errors.size())];
  note(current_host_,
       std::string(call) + "() fails: " + std::error_code(error, std::system_category()).message());
  return error;
}

// Only allocations of fibers fail: the worker and the simulation cannot handle an error.
bool Core::allocation_fails() noexcept {
  if (shelters_ != 0 || current_is_helper_ || !this_fiber::is_fiber()) return false;
  if (!is_failure_due(faults_here().memory)) return false;
  const Shelter shelter(this);
  note(current_host_, "an allocation fails");
  return true;
}

}  // namespace weft::sim
