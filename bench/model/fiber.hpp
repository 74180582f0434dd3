// A simulated fiber, and what fibers do: a load.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/model/memory.hpp"
#include "bench/model/units.hpp"

namespace weft::bench::model {

class Worker;
class World;

// All loads use the same record; each says what the numbers mean.
struct Fiber {
  bool started = false;
  bool done = false;
  int home = -1;      // The worker that it was on last, or that has spawned it; -1: none.
  Time ready_at = 0;  // Since when it is runnable.
  int step = 0;       // Where it goes on.
  std::int64_t number = 0;
  Fiber* parent = nullptr;
  Fiber* joiner = nullptr;
  std::vector<Fiber*> children;
};

enum class Outcome : std::uint8_t { parked, yielded, ended };

class Load {
 public:
  Load() = default;
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  virtual ~Load() = default;

  // Before time begins: adds sources of work other than the first fiber.
  virtual void begin(World&) {}
  // What the first fiber is; it comes from outside. Null: there is none.
  [[nodiscard]] virtual Fiber* first() = 0;
  // The fiber runs on the worker until it parks, yields or ends. Ends the run when all is done.
  [[nodiscard]] virtual Outcome run(Fiber& fiber, Worker& worker) = 0;
};

// Records of a load, used again.
class FiberSupply {
 public:
  [[nodiscard]] Fiber& take(int step, std::int64_t number, Fiber* parent) {
    if (free_.empty()) {
      all_.push_back(std::make_unique<Fiber>());
      free_.push_back(all_.back().get());
    }
    Fiber& fiber = *free_.back();
    free_.pop_back();
    fiber.started = fiber.done = false;
    fiber.home = -1;
    fiber.step = step;
    fiber.number = number;
    fiber.parent = parent;
    fiber.joiner = nullptr;
    fiber.children.clear();
    return fiber;
  }
  void give(Fiber& fiber) { free_.push_back(&fiber); }

 private:
  std::vector<std::unique_ptr<Fiber>> all_;
  std::vector<Fiber*> free_;
};

}  // namespace weft::bench::model
