// A simulated worker.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "bench/model/world.hpp"

namespace weft::bench::model {

// Mirrors scheduler/worker.hpp function by function, under the same names, and says how long each
// step takes. What is left out: timers, trimming, the look for deadlocks.
class Worker {
 public:
  Worker(World& world, unsigned index);

  // A party of the clock.
  void live();
  [[nodiscard]] Seat& seat() { return seat_; }

  // By the fiber that runs here, or for it.
  void compute(Time time) { spend(Use::work, time); }
  void spawn(Fiber& fiber, Time cost);
  void spawn(Fiber& fiber) { spawn(fiber, world_.costs.spawn); }
  void make_ready(Fiber& fiber);
  void make_ready_last(Fiber& fiber);
  void touch(Line& line) { spend(Use::fibers, write(line)); }

  void spend(Use use, Time time);
  [[nodiscard]] Time now() const { return world_.clock.now(); }
  [[nodiscard]] Time write(Line& line) { return world_.memory.write(line, index_, now()); }
  [[nodiscard]] Time read(Line& line) { return world_.memory.read(line, index_, now()); }
  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] unsigned index() const { return index_; }

  // By others.
  void unpark();
  void call_from_poller();
  [[nodiscard]] bool has_work() const {
    return !queue_.empty() || slot_ != nullptr || !overflow_.empty();
  }

 private:
  static constexpr std::size_t kCapacity = 256;
  static constexpr std::uint32_t kFairnessPeriod = 61;
  static constexpr std::uint32_t kSlotRunsInARow = 3;

  struct Look {
    Time time = -kMillisecond;
    std::uint64_t head = 0;
    std::uint64_t switches = 0;
    const Fiber* slot = nullptr;
  };

  // worker.cpp
  void run_fibers(Fiber* fiber);
  void bring_here(Fiber& fiber);
  [[nodiscard]] Fiber* take_next();
  [[nodiscard]] Fiber* pop();
  void push(Fiber& fiber);
  void announce_work();

  // worker_idle.cpp
  [[nodiscard]] Fiber* find_work();
  void take_fair_share();
  void refill();
  void run_events();
  void poll();
  void sleep();
  [[nodiscard]] bool block_until(Time limit);
  [[nodiscard]] Time look_at_all_timers();
  [[nodiscard]] Fiber* pop_injected();

  // worker_search.cpp
  [[nodiscard]] Fiber* search();
  [[nodiscard]] Fiber* search_for_a_while();
  [[nodiscard]] Fiber* look_everywhere(Time now);
  [[nodiscard]] Fiber* steal_from(Worker& victim, Look& look, Time now);
  [[nodiscard]] bool is_worth_it(const Look& before, const Look& look, std::size_t size) const;
  [[nodiscard]] Fiber* steal_half(Worker& victim);
  [[nodiscard]] Fiber* steal_chain(Worker& victim);
  [[nodiscard]] Worker& victim_number(std::uint32_t number, std::uint32_t start);
  void adopt_chain(const std::vector<Fiber*>& chain);
  [[nodiscard]] bool try_begin_search();
  void end_search();
  [[nodiscard]] bool others_make_progress() const;
  [[nodiscard]] std::uint32_t below(std::uint32_t bound);

  World& world_;
  const unsigned index_;
  Seat seat_;
  std::mt19937 random_;

  // What thieves read and write; the lines are those of the real worker.
  std::deque<Fiber*> queue_;
  std::uint64_t head_ = 0;
  Fiber* slot_ = nullptr;
  std::deque<std::vector<Fiber*>> overflow_;
  std::uint64_t switches_ = 0;
  Line head_line_{LineKind::head};
  Line tail_line_{LineKind::tail};
  Line slot_line_{LineKind::slot};  // Also the overflow's counter and the next timer's time.
  Line counters_line_{LineKind::counters};

  // The parker.
  bool token_ = false;
  bool is_blocked_ = false;

  std::vector<Look> looks_;
  unsigned last_victim_ = 0;
  std::uint32_t tick_ = 0;
  std::uint32_t slot_runs_ = 0;
  bool fair_share_due_ = false;
  bool searching_ = false;
  Time last_poll_ = -kMillisecond;
};

}  // namespace weft::bench::model
