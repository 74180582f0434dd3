#include "scheduler/simulation.hpp"

#include <weft/detail/simulated_process.hpp>

#include "base/panic.hpp"
#include "fibers/sanitizer.hpp"
#include "scheduler/machine_clock.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/worker/current_worker.hpp"

namespace weft::detail {

namespace {

// Returns the simulation of the calling thread; null if the thread belongs to no simulation.
Simulation* simulation_here() noexcept {
  scheduler::Worker* worker = scheduler::current_worker();
  return worker == nullptr ? nullptr : worker->shared().options().simulation;
}

bool is_inside() noexcept { return simulation_here() != nullptr; }

std::int64_t now() noexcept {
  if (const Simulation* simulation = simulation_here()) return simulation->host_now();
  return scheduler::system_now();
}

std::int64_t machine_now() noexcept {
  if (const Simulation* simulation = simulation_here()) return simulation->now();
  return scheduler::system_now();
}

std::int64_t machine_time(std::int64_t host_time) noexcept {
  const Simulation* simulation = simulation_here();
  return simulation == nullptr ? host_time : simulation->machine_time(host_time);
}

std::int64_t wall_clock() noexcept {
  if (const Simulation* simulation = simulation_here()) return simulation->wall_clock();
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::uint64_t random() noexcept { return simulation_here()->random(); }

constinit const Simulated functions{&is_inside,    &now,        &machine_now,
                                    &machine_time, &wall_clock, &random};

// Relaxed: the numbers only have to be distinct.
constinit Atomic<std::uint32_t> simulations{0};

void tell_of_panic() noexcept {
  if (Simulation* simulation = simulation_here()) simulation->panicked();
}

scheduler::SchedulerOptions options_for(Simulation& simulation, std::size_t stack_size) {
  scheduler::SchedulerOptions options;
  options.workers = 1;
  options.size_class = fibers::size_class_of(stack_size);
  options.max_fibers = std::size_t{1} << 26;
  options.on_exception = [&simulation](std::exception_ptr failure) {
    simulation.failed(std::move(failure));
  };
  options.monitor.enabled = false;
  options.simulation = &simulation;
  return options;
}

}  // namespace

Simulation::Simulation() noexcept : number_(simulations.fetch_add(1, relaxed) + 1) {}

Stage::Stage(Simulation& simulation, scheduler::EventSource& events, std::size_t stack_size) {
  // Relaxed, here and below: the pointer refers to constants, and the worker starts and ends
  // between the two stores.
  installed_simulation.store(&functions, relaxed);
  try {
    scheduler_ =
        std::make_unique<scheduler::Scheduler>(options_for(simulation, stack_size), events);
  } catch (...) {
    installed_simulation.store(nullptr, relaxed);
    throw;
  }
  // The process's plain threads do not belong to the simulation.
  scheduler::stop_choosing(*scheduler_);
  former_hook_ = base::set_panic_hook(&tell_of_panic);
}

Stage::~Stage() {
  (void)base::set_panic_hook(former_hook_);
  scheduler_.reset();
  installed_simulation.store(nullptr, relaxed);
}

void Stage::spawn(Task&& task) { scheduler_->spawn(std::move(task), {}, nullptr); }

Deadline Stage::next_timer() const noexcept {
  return scheduler_->shared().desk(0).next_timer_hint();
}

void Stage::learn_of_all_fibers() noexcept { fibers::happens_after_all(); }

std::uint64_t simulated_process() noexcept {
  const Simulation* simulation = simulation_here();
  return simulation == nullptr ? 0 : simulation->process();
}

}  // namespace weft::detail
