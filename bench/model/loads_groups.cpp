// Fibers that one spawns and waits for, and pairs that wake each other.
#include "bench/model/loads.hpp"
#include "bench/model/worker.hpp"

namespace weft::bench::model {

namespace {

// A fiber that computes, and counts a group down.
struct Group {
  Line line;
  std::int64_t left = 0;
  Fiber* waiter = nullptr;

  void done(Worker& worker) {
    worker.touch(line);
    if (--left == 0 && waiter != nullptr) {
      worker.make_ready(*std::exchange(waiter, nullptr));
    }
  }
  // True if nothing is left; else the fiber has to park.
  bool wait(Fiber& fiber, Worker& worker) {
    worker.touch(line);
    if (left == 0) return true;
    waiter = &fiber;
    return false;
  }
};

class Batches : public Load {
 public:
  explicit Batches(const LoadOptions& options)
      : size_(options.size), rounds_(options.rounds), work_(options.work) {}
  Fiber* first() override { return &spawner_; }

  Outcome run(Fiber& fiber, Worker& worker) override {
    if (&fiber == &spawner_) return spawn_rounds(worker);
    worker.compute(work_);
    group_.done(worker);
    supply_.give(fiber);
    return Outcome::ended;
  }

 private:
  Outcome spawn_rounds(Worker& worker) {
    for (; spawner_.number < rounds_;) {
      if (spawner_.step == 0) {
        group_.left = size_;
        for (std::int64_t i = 0; i < size_; ++i) worker.spawn(supply_.take(0, 0, &spawner_));
        spawner_.step = 1;
        if (!group_.wait(spawner_, worker)) return Outcome::parked;
      }
      spawner_.step = 0;
      ++spawner_.number;
    }
    worker.world().finish();
  }

  const std::int64_t size_;
  const std::int64_t rounds_;
  const Time work_;
  Fiber spawner_;
  Group group_;
  FiberSupply supply_;
};

// `children` holds the partner; `number` counts turns.
class Pairs : public Load {
 public:
  explicit Pairs(const LoadOptions& options)
      : size_(options.size), turns_(2 * options.rounds), work_(options.work) {}
  Fiber* first() override { return &spawner_; }

  Outcome run(Fiber& fiber, Worker& worker) override {
    if (&fiber == &spawner_) return spawn_pairs(worker);
    Fiber& partner = *fiber.children.front();
    worker.compute(work_);
    if (++fiber.number + partner.number >= turns_) {
      if (++finished_ == size_) worker.world().finish();
      return Outcome::ended;
    }
    worker.make_ready(partner);
    return Outcome::parked;
  }

 private:
  Outcome spawn_pairs(Worker& worker) {
    for (std::int64_t i = 0; i < size_; ++i) {
      Fiber& one = supply_.take(0, 0, nullptr);
      Fiber& other = supply_.take(0, 0, nullptr);
      one.children.push_back(&other);
      other.children.push_back(&one);
      worker.spawn(one);
    }
    return Outcome::ended;
  }

  const std::int64_t size_;
  const std::int64_t turns_;
  const Time work_;
  std::int64_t finished_ = 0;
  Fiber spawner_;
  FiberSupply supply_;
};

// The fiber that comes from outside has step 1, and parks until its group is done.
class Bursts : public Load {
 public:
  explicit Bursts(const LoadOptions& options)
      : size_(options.size),
        rounds_(options.rounds),
        work_(options.work),
        gap_(options.duration / options.rounds) {}
  Fiber* first() override { return nullptr; }
  void begin(World& world) override {
    world.clock.add(source_, [this, &world] {
      for (std::int64_t i = 0; i < rounds_; ++i) {
        world.clock.wait_until(source_, (i + 1) * gap_);
        began_ = world.clock.now();
        world.inject(supply_.take(1, 0, nullptr));
      }
      world.clock.wait_until(source_, (rounds_ + 1) * gap_);
      world.finish();
    });
  }

  Outcome run(Fiber& fiber, Worker& worker) override {
    if (fiber.step == 0) {
      worker.compute(work_);
      group_.done(worker);
    } else if (fiber.step == 1) {
      group_.left = size_;
      for (std::int64_t i = 0; i < size_; ++i) worker.spawn(supply_.take(0, 0, &fiber));
      fiber.step = 2;
      if (!group_.wait(fiber, worker)) return Outcome::parked;
    }
    if (fiber.step == 2) worker.world().sums.response.add(worker.now() - began_);
    supply_.give(fiber);
    return Outcome::ended;
  }

 private:
  const std::int64_t size_;
  const std::int64_t rounds_;
  const Time work_;
  const Time gap_;
  Time began_ = 0;
  Seat source_;
  Group group_;
  FiberSupply supply_;
};

}  // namespace

std::unique_ptr<Load> make_batches(const LoadOptions& options) {
  return std::make_unique<Batches>(options);
}
std::unique_ptr<Load> make_pairs(const LoadOptions& options) {
  return std::make_unique<Pairs>(options);
}
std::unique_ptr<Load> make_bursts(const LoadOptions& options) {
  return std::make_unique<Bursts>(options);
}

}  // namespace weft::bench::model
