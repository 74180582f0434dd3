// scheduler/queues/run_queue.cpp: whatever the owner and the thieves do, each fiber is taken once,
// and the thread that takes it sees writes from before its push.
#include "scheduler/queues/run_queue.cpp"

#include "tests/model/model.hpp"

namespace weft::fibers {
// Is an item of a queue, with data written before the push, and a count of how often it was taken.
struct Fiber {
  model::Data<int> written{0};
  int taken = 0;  // Not part of the modelled program: the checker runs one thread at a time.
};
}  // namespace weft::fibers

namespace {

using weft::fibers::Fiber;
using weft::model::Aligned;
using weft::model::expect;
using weft::scheduler::RunQueue;

enum Fault { kNone, kPopsTwice, kForgetsSpilled, kTakesUnasked };

void take(Fiber& fiber) {
  expect(++fiber.taken == 1, "a fiber came out twice");
  expect(fiber.written.get() == 1, "a fiber came out without what was written before its push");
  fiber.written.set(2);
}

void drain(RunQueue& queue) {
  while (Fiber* fiber = queue.pop()) take(*fiber);
}

// A thief calls it with its own empty queue.
void steal(RunQueue& victim, RunQueue& own) {
  RunQueue::Batch batch;
  const std::uint32_t count = victim.take_half(batch);
  for (std::uint32_t i = 0; i < count; ++i) expect(own.push(*batch[i]), "a thief's queue was full");
}

// The owner pushes and pops; each thief steals twice and runs the stolen fibers. With kRobThieves,
// the second thief steals only from the first thief, which has filled its queue by stealing.
template <int kThieves, int kFibers, bool kRobThieves>
struct Thieves : rl::test_suite<Thieves<kThieves, kFibers, kRobThieves>, kThieves + 1> {
  Aligned<RunQueue> queues[kThieves + 1];
  Fiber fibers[kFibers];

  RunQueue& owners() { return *queues[kThieves]; }

  void thread(unsigned index) {
    if (index < kThieves) return steal_twice(index);
    for (int i = 0; i < kFibers; ++i) {
      fibers[i].written.set(1);
      expect(owners().push(fibers[i]), "a queue of few fibers was full");
      if (i % 2 == 1) {
        if (Fiber* fiber = owners().pop()) {
          take(*fiber);
          if (weft::model::fault == kPopsTwice) take(*fiber);
        }
      }
    }
  }

  void steal_twice(unsigned index) {
    RunQueue& own = *queues[index];
    RunQueue& victim = kRobThieves && index > 0 ? *queues[0] : owners();
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 20 && victim.size_hint() == 0; ++j) weft::model::let_others_run();
      steal(victim, own);
      if (!kRobThieves || i == 0) drain(own);
    }
  }

  void after() {
    for (auto& queue : queues) drain(*queue);
    for (const Fiber& fiber : fibers) expect(fiber.taken == 1, "a fiber was lost");
  }
};

// Lets the owner take its newest fibers back, perhaps from between other fibers, while thieves
// steal.
template <int kThieves, int kFibers>
struct Withdrawals : rl::test_suite<Withdrawals<kThieves, kFibers>, kThieves + 1> {
  Aligned<RunQueue> queues[kThieves + 1];
  Fiber fibers[kFibers];

  RunQueue& owners() { return *queues[kThieves]; }

  void thread(unsigned index) {
    if (index < kThieves) {
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 20 && owners().size_hint() == 0; ++j) weft::model::let_others_run();
        steal(owners(), *queues[index]);
        drain(*queues[index]);
      }
      return;
    }
    for (int i = 0; i < kFibers; ++i) {
      fibers[i].written.set(1);
      expect(owners().push(fibers[i]), "a queue of few fibers was full");
      if (i % 2 == 1) take_back(fibers[i - (weft::model::perhaps() ? 1 : 0)]);
      if (i % 3 == 2) {
        if (Fiber* fiber = owners().pop()) take(*fiber);
      }
    }
  }

  void take_back(const Fiber& wanted) {
    const bool is_meant = weft::model::perhaps();
    Fiber* taken = owners().take_recent([&](const Fiber& fiber) { return &fiber == &wanted; },
                                        [&](const Fiber&) { return is_meant; });
    if (taken != nullptr) take(*taken);
    // Imitates an owner that takes a fiber from the queue without a withdrawal.
    if (weft::model::fault == kTakesUnasked && !is_meant) take(const_cast<Fiber&>(wanted));
  }

  void after() {
    for (auto& queue : queues) drain(*queue);
    for (const Fiber& fiber : fibers) expect(fiber.taken == 1, "a fiber was lost");
  }
};

// Fills the queue: the owner makes room by a spill or a pop, and overwrites slots that a thief may
// be reading.
struct Full : rl::test_suite<Full, 2> {
  static constexpr std::uint32_t kMore = 3;
  static constexpr std::uint32_t kFibers = RunQueue::kCapacity + kMore;
  Aligned<RunQueue> queue;
  Aligned<RunQueue> thief;
  Fiber fibers[kFibers];

  void before() {
    for (Fiber& fiber : fibers) fiber.written.set(1);
    for (std::uint32_t i = 0; i < RunQueue::kCapacity; ++i) (void)queue->push(fibers[i]);
  }

  void thread(unsigned index) {
    if (index == 0) return steal(*queue, *thief);
    if (weft::model::perhaps()) {
      if (Fiber* fiber = queue->pop()) take(*fiber);
    }
    for (std::uint32_t i = RunQueue::kCapacity; i < kFibers; ++i) push(fibers[i]);
  }

  // Imitates LocalQueue::push_new and LocalQueue::spill.
  void push(Fiber& fiber) {
    while (!queue->push(fiber)) {
      RunQueue::Batch batch;
      const std::uint32_t count = queue->take_half(batch);
      if (weft::model::fault == kForgetsSpilled && count > 1) batch[0] = batch[1];
      for (std::uint32_t i = 0; i < count; ++i) take(*batch[i]);
    }
  }

  void after() {
    drain(*queue);
    drain(*thief);
    for (const Fiber& fiber : fibers) expect(fiber.taken == 1, "a fiber was lost");
  }
};

}  // namespace

int main(int count, char** arguments) {
  using weft::model::bounded_search;
  using weft::model::broken_by;
  using weft::model::random_search;
  return weft::model::Program(
             "run_queue",
             {bounded_search<Thieves<1, 2, false>>("one thief", 2),
              random_search<Thieves<1, 5, false>>("one thief, more fibers", 15'000),
              random_search<Thieves<2, 6, false>>("two thieves", 15'000),
              random_search<Thieves<2, 8, true>>("a thief robs a thief", 15'000),
              bounded_search<Withdrawals<1, 2>>("one is taken back, one thief", 3),
              random_search<Withdrawals<1, 6>>("some are taken back, one thief", 20'000),
              random_search<Withdrawals<2, 6>>("some are taken back, two thieves", 20'000),
              random_search<Full>("full", 4'000)},
             {weft::model::relaxed_orders(), broken_by(kPopsTwice, "a fiber is run twice"),
              broken_by(kForgetsSpilled, "a spilled fiber is dropped"),
              broken_by(kTakesUnasked, "a fiber is run that stays in the queue")})
      .run(count, arguments);
}
