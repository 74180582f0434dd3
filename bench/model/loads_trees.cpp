// Fibers that spawn fibers that spawn fibers.
#include <deque>
#include <unordered_map>

#include "bench/model/loads.hpp"
#include "bench/model/worker.hpp"

namespace weft::bench::model {

namespace {

class Fib : public Load {
 public:
  explicit Fib(const LoadOptions& options) : work_(options.work) { root_.number = options.size; }
  Fiber* first() override { return &root_; }

  Outcome run(Fiber& fiber, Worker& worker) override {
    // fib(n - 2) is computed by the fiber itself: so it goes down in steps of two, then joins.
    for (; fiber.number >= 2; fiber.number -= 2) {
      worker.compute(work_);
      Fiber& child = supply_.take(0, fiber.number - 1, &fiber);
      fiber.children.push_back(&child);
      worker.spawn(child, worker.world().costs.spawn_joinable);
    }
    for (; !fiber.children.empty(); fiber.children.pop_back()) {
      Fiber& child = *fiber.children.back();
      if (child.home >= 0) {
        const auto from = static_cast<unsigned>(child.home);
        worker.spend(Use::fibers, worker.world().memory.move(from, worker.index()));
      }
      if (!child.done) {
        child.joiner = &fiber;
        return Outcome::parked;
      }
      supply_.give(child);
    }
    if (&fiber == &root_) worker.world().finish();
    fiber.done = true;  // From here on the record may be used again.
    if (fiber.joiner != nullptr) worker.make_ready(*fiber.joiner);
    return Outcome::ended;
  }

 private:
  const Time work_;
  FiberSupply supply_;
  Fiber root_;
};

// Steps: 0 begins, 1 receives, 2 has sent. `number` is the size of the fiber's part of the tree.
class Skynet : public Load {
 public:
  explicit Skynet(const LoadOptions& options) : work_(options.work) { root_.number = options.size; }
  Fiber* first() override { return &root_; }

  Outcome run(Fiber& fiber, Worker& worker) override {
    constexpr int kChildren = 10;
    if (fiber.step == 0) {
      worker.compute(work_);
      fiber.step = 1;
      if (fiber.number > 1) {
        Channel& channel = channels_[&fiber];
        channel = Channel();
        channel.missing = kChildren;
        for (int i = 0; i < kChildren; ++i) {
          worker.spawn(supply_.take(0, fiber.number / kChildren, &fiber));
        }
      }
    }
    if (fiber.step == 1) {
      if (fiber.number > 1 && !receive_all(fiber, worker)) return Outcome::parked;
      if (&fiber == &root_) worker.world().finish();
      fiber.step = 2;
      if (!send(fiber, worker)) return Outcome::parked;
    }
    supply_.give(fiber);
    return Outcome::ended;
  }

 private:
  // Unbuffered.
  struct Channel {
    Line line;
    std::deque<Fiber*> senders;
    Fiber* receiver = nullptr;
    int missing = 0;
  };

  bool receive_all(Fiber& fiber, Worker& worker) {
    Channel& channel = channels_[&fiber];
    while (channel.missing > 0) {
      worker.spend(Use::fibers, worker.world().costs.channel + worker.write(channel.line));
      if (channel.missing == 0) break;
      if (channel.senders.empty()) {
        channel.receiver = &fiber;
        return false;
      }
      Fiber* sender = channel.senders.front();
      channel.senders.pop_front();
      --channel.missing;
      worker.make_ready(*sender);
    }
    return true;
  }

  // False: it waits for the receiver.
  bool send(Fiber& fiber, Worker& worker) {
    Channel& channel = channels_[fiber.parent];
    worker.spend(Use::fibers, worker.world().costs.channel + worker.write(channel.line));
    if (channel.receiver == nullptr) {
      channel.senders.push_back(&fiber);
      return false;
    }
    --channel.missing;
    worker.make_ready(*std::exchange(channel.receiver, nullptr));
    return true;
  }

  const Time work_;
  FiberSupply supply_;
  Fiber root_;
  std::unordered_map<Fiber*, Channel> channels_;
};

}  // namespace

std::unique_ptr<Load> make_fib(const LoadOptions& options) {
  return std::make_unique<Fib>(options);
}
std::unique_ptr<Load> make_skynet(const LoadOptions& options) {
  return std::make_unique<Skynet>(options);
}

}  // namespace weft::bench::model
