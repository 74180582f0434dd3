#include "libs/sim/core.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "libs/sim/disks.hpp"
#include "libs/sim/faults.hpp"
#include "libs/sim/leaks.hpp"
#include "libs/sim/races.hpp"
#include "libs/sim/real_sockets.hpp"
#include "libs/sim/shelter.hpp"
#include "libs/sim/story.hpp"
#include "libs/sim/wires.hpp"

namespace weft::sim {

namespace {

// The number of a stream of a seed. The schedule has stream 1, and disturbances have stream 3.
constexpr std::uint64_t kRandomStream = 2;

// The running world; there is only one at a time. The plain thread writes it before the worker
// starts, and after the worker has ended.
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

// Fails the run if the host has open sockets or files.
void demand_closed_descriptors(RunState& run, const Wires& wires, const Disks& disks,
                               std::uint32_t number) {
  const std::size_t open = wires.open_sockets(number) + disks.open_files(number);
  if (open == 0 || !run.is_running()) return;
  const std::string whose = number == 0 ? "the body" : "'" + run.host(number).name + "'";
  run.fail(std::to_string(open) + " descriptors that " + whose +
           " has opened are open after its end");
}

// Fails the run if a host without fibers has open descriptors, because no fiber can close them.
void demand_closed_descriptors_of_ended_hosts(RunState& run, const Wires& wires,
                                              const Disks& disks) {
  for (std::uint32_t number = 1; number < run.hosts().size(); ++number) {
    if (run.host(number).actors == 0) demand_closed_descriptors(run, wires, disks, number);
  }
}

}  // namespace

Core::Core(const Options& options, std::uint64_t seed, const Plan& plan, Schedule& schedule)
    : options_(options),
      schedule_(schedule),
      state_(options, seed, plan, *this),
      random_(seed, kRandomStream),
      disturbances_(seed, plan),
      watch_(options),
      disks_(std::make_unique<Disks>(state_)),
      wires_(std::make_unique<Wires>(state_)),
      events_(std::make_unique<Events>(state_, *wires_, static_cast<Timekeeper&>(*this))),
      kernel_(std::make_unique<CallFaultsKernel>(state_, *wires_, events_->real_hosts(), *disks_)) {
  schedule_.begin(seed, plan);
}

// The plain thread runs this destructor, which destroys objects that the worker's fibers used.
Core::~Core() {
  begin_unwatched();
  kernel_.reset();
  events_.reset();
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
  set_socket_hook([](int family) noexcept {
    Core* const core = find();
    return core != nullptr && core->events().refuses_socket(family);
  });
  stage_ = std::make_unique<detail::Stage>(*this, *events_, options_.stack_size);
  stage_->spawn(detail::Task([this, &body] { run_body(body); }));
  wait_for_end();
  stage_.reset();
  detail::Stage::learn_of_all_fibers();
  set_allocation_hook(nullptr);
  set_socket_hook(nullptr);
  io::Kernel::install(nullptr);
  running_core = nullptr;
}

// If a fiber computes forever, its world does not end. Only this function reports such a fiber.
void Core::wait_for_end() {
  for (std::uint64_t before = 0; !state_.ends_within(options_.patience);) {
    const std::uint64_t now = turns();
    if (now == before && now != 0) {
      const std::string text =
          "weft::sim: in the run of WEFT_SIM_SEED=" + std::to_string(state_.seed()) +
          " a fiber has run for " + seconds_text(options_.patience.count()) +
          " of real time without a wait\n" + stage_->describe_running();
      (void)std::fwrite(text.data(), 1, text.size(), stderr);
    }
    before = now;
  }
}

// --- The body ---

void Core::run_body(const std::function<void(World&)>& body) {
  World world(*this);
  try {
    body(world);
    if (state_.is_running()) demand_end(0);
    demand_closed_descriptors_of_ended_hosts(state_, *wires_, *disks_);
    // No later turn checks for a data race.
    if (state_.is_running() && watch_.has_race()) {
      state_.fail(std::string(kRaceFound) + "\n" + stage_->describe());
    }
  } catch (...) {
    state_.fail("the body threw: " + text_of(std::current_exception()));
  }
  state_.end();
}

void Core::demand_end(std::uint32_t number) {
  const Host& host = state_.host(number);
  const bool is_world = number == 0;
  const std::uint64_t own = is_world ? 1 : 0;  // The body itself waits here.
  const Deadline limit = Deadline::after(options_.grace);
  std::chrono::nanoseconds pause = std::chrono::microseconds(100);
  while (host.actors > own && !limit.passed()) {
    this_fiber::sleep_for(pause);
    pause = std::min<std::chrono::nanoseconds>(2 * pause, std::chrono::seconds(1));
  }
  if (!state_.is_running()) return;
  const std::string whose = is_world ? "the body" : "'" + host.name + "'";
  if (host.actors > own) {
    state_.fail(std::to_string(host.actors - own) + " fibers that " + whose +
                " has spawned are left after its end and Options::grace\n" + stage_->describe());
  } else {
    demand_closed_descriptors(state_, *wires_, *disks_, number);
  }
}

void Core::leave_for_ever() noexcept {
  for (;;) detail::park({[](void*) noexcept {}, nullptr}, detail::WaitReason::sleep);
}

// --- Fibers ---

void Core::spawned(fibers::Fiber& fiber) noexcept {
  const Shelter shelter(&state_);
  const std::uint32_t number = spawn_host_.value_or(state_.current_host());
  Host& host = state_.host(number);
  const bool is_helper = spawns_helper_ || (current_is_helper_ && !spawn_host_);
  actors_.insert_or_assign(&fiber,
                           Actor{++spawns_, schedule_.priority(), number, host.life, is_helper});
  if (!is_helper) ++host.actors;
}

void Core::ready(fibers::Fiber& fiber) noexcept {
  const Shelter shelter(&state_);
  if (state_.begin()) {
    ignore_leaks_of_this_thread();
    woken_from_outside_.store(nullptr, detail::relaxed);  // The plain thread has spawned the body.
  } else if (&fiber == woken_from_outside_.load(detail::relaxed)) {
    woken_from_outside_.store(nullptr, detail::relaxed);
    if (!events_->lets_in_threads()) return refuse_wake(fiber);
  }
  auto found = actors_.find(&fiber);
  if (found == actors_.end()) {
    spawned(fiber);
    found = actors_.find(&fiber);
  }
  Actor& actor = found->second;
  if (is_dead(actor)) return;
  Host& host = state_.host(actor.host);
  if (host.state == HostState::stopped) {
    host.held.push_back(&fiber);
    return;
  }
  const bool goes_on = &fiber == running_;
  if (goes_on) resumable_ = ready_.size();
  ready_.push_back({&fiber, &actor, goes_on, now_});
}

fibers::Fiber* Core::take(bool& ends_turn) noexcept {
  const Shelter shelter(&state_);
  if (ready_.empty() || !state_.is_running()) return nullptr;
  if (!watch_.begin_turn()) {
    state_.fail("fibers have had Options::max_turns turns, and the body has not returned\n" +
                stage_->describe());
  } else if (const Candidate* starving = watch_.find_starving(ready_, now_)) {
    state_.fail("a fiber of '" + state_.host(starving->actor->host).name +
                "' starves: it was ready for " + seconds_text(now_ - starving->ready_since) +
                " without a turn\n" + stage_->describe(*starving->fiber) + stage_->describe());
  } else if (watch_.has_race()) {
    state_.fail(std::string(kRaceFound) + "\n" + stage_->describe());
  }
  if (!state_.is_running()) return nullptr;
  const std::size_t index = choose();
  if (index == kNone) return nullptr;
  if (resumable_ < ready_.size()) ready_[resumable_].goes_on = false;
  resumable_ = kNone;
  const Candidate chosen = ready_[index];
  if (ready_.size() > 1) decide({chosen.actor->number, ready_.size()});
  ready_[index] = ready_.back();
  ready_.pop_back();
  running_ = chosen.fiber;
  state_.switch_to_host(chosen.actor->host);
  process_ = chosen.actor->life;
  current_is_helper_ = chosen.actor->is_helper;
  ends_turn = ended_turn_ = schedule_.ends_turn();
  now_ += options_.turn_time.count();
  return chosen.fiber;
}

void Core::ended(fibers::Fiber& fiber) noexcept {
  const Shelter shelter(&state_);
  const auto found = actors_.find(&fiber);
  if (found == actors_.end()) return;
  const Actor& actor = found->second;
  if (!is_dead(actor) && !actor.is_helper) --state_.host(actor.host).actors;
  actors_.erase(found);
  running_ = nullptr;
}

void Core::woken_from_outside(fibers::Fiber& fiber) noexcept {
  woken_from_outside_.store(&fiber, detail::relaxed);
}

void Core::refuse_wake(const fibers::Fiber& fiber) noexcept {
  state_.fail(
      "a plain thread woke a fiber: this is refused in a simulation, as the seed does not decide "
      "when; World::let_in(\"thread\") admits it\n" +
      stage_->describe(fiber));
}

void Core::failed(std::exception_ptr failure) noexcept {
  const Shelter shelter(&state_);
  state_.fail("an exception left a fiber of '" + state_.here().name + "': " + text_of(failure));
}

void Core::panicked() noexcept {
  const std::string text =
      "weft::sim: in the run of WEFT_SIM_SEED=" + std::to_string(state_.seed()) + ", after\n" +
      state_.story();
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

std::uint64_t Core::random() noexcept {
  const std::uint64_t value = random_.next();
  decide({~std::uint64_t{0}, value});
  return value;
}

void Core::decide(Decision decision) noexcept {
  const Shelter shelter(&state_);
  const auto difference = decisions_.add(decision);
  if (difference && state_.is_running()) state_.fail(*difference + "\n" + stage_->describe());
}

void Core::spawn_helper(std::function<void()> action) {
  const Shelter shelter(&state_);
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
    if (events_->may_hear_from_outside()) return 0;
    state_.fail("deadlock: nothing can happen any more, and the body has not returned\n" +
                stage_->describe());
    return 0;
  }
  if (next.nanoseconds() - kBeginning > options_.time_limit.count()) {
    state_.fail("the world has lasted longer than Options::time_limit\n" + stage_->describe());
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
  state_.host(number).faults = faults;
  if (faults.memory > 0) {
    set_allocation_hook([]() noexcept {
      Core* core = find();
      return core != nullptr && core->allocation_fails();
    });
  }
}

// Only allocations of fibers fail: the worker and the simulation cannot handle an error.
bool Core::allocation_fails() noexcept {
  if (state_.is_sheltered() || current_is_helper_ || !this_fiber::is_fiber()) return false;
  if (!state_.is_failure_due(state_.here().faults.memory)) return false;
  const Shelter shelter(&state_);
  state_.note(state_.current_host(), "an allocation fails");
  return true;
}

}  // namespace weft::sim
