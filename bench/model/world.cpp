#include "bench/model/world.hpp"

#include <algorithm>

#include "bench/model/worker.hpp"

namespace weft::bench::model {

World::World(unsigned count, const Costs& costs_given, const Policy& policy_given, Load& load_given,
             std::uint64_t seed_given)
    : costs(costs_given),
      policy(policy_given),
      load(load_given),
      memory(costs_given.distances),
      seed(seed_given),
      wake_below_(std::max(1U, static_cast<unsigned>(policy_given.wake_share * count))) {
  idle.asleep.resize(count);
  for (unsigned i = 0; i < count; ++i) workers.push_back(std::make_unique<Worker>(*this, i));
}

World::~World() = default;

void World::run() {
  for (auto& worker : workers) {
    clock.add(worker->seat(), [&worker = *worker] { worker.live(); });
  }
  load.begin(*this);
  if (Fiber* first = load.first()) injected.push_back(first);
  clock.run();
}

void World::finish() { clock.stop(); }

unsigned World::most_searching() const {
  const auto count = static_cast<double>(workers.size());
  const auto share = static_cast<unsigned>(policy.searching_share * count);
  return std::clamp(share, 1U, policy.most_searching);
}

void World::inject(Fiber& fiber) {
  fiber.ready_at = clock.now();
  injected.push_back(&fiber);
  if (wants_wake()) wake_one(nullptr);
  if (napper != nullptr) napper->unpark();
}

void World::deliver_event(Fiber& fiber) {
  fiber.ready_at = clock.now();
  events.push_back(&fiber);
  if (in_poller != nullptr) in_poller->call_from_poller();
}

void World::update_hint(Worker& by) {
  if (!policy.has_hint_line || idle.hint == wants_wake()) return;
  idle.hint = wants_wake();
  by.spend(Use::search, by.write(idle.hint_line));
}

void World::wake_one(Worker* by) {
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (!idle.asleep[i]) continue;
    if (by != nullptr) {
      by->spend(Use::kernel, by->write(idle.searching_line) + by->write(idle.bits_line));
      // Others may have been faster meanwhile.
      if (!wants_wake() || !idle.asleep[i]) return;
    }
    idle.asleep[i] = false;
    --idle.sleeping;
    ++idle.searching;
    ++sums.wakes;
    workers[i]->unpark();
    if (by != nullptr) {
      update_hint(*by);
      by->spend(Use::kernel, costs.wake_call);
    }
    return;
  }
}

bool World::has_work() const {
  return !injected.empty() ||
         std::ranges::any_of(workers, [](const auto& worker) { return worker->has_work(); });
}

}  // namespace weft::bench::model
