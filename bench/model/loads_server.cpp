// Requests from the kernel.
#include <cmath>
#include <random>

#include "bench/model/loads.hpp"
#include "bench/model/worker.hpp"

namespace weft::bench::model {

namespace {

// A connection has one request at a time: a request that finds none free opens one. `number` is
// when its request came.
class Server : public Load {
 public:
  explicit Server(const LoadOptions& options)
      : work_(options.work),
        duration_(options.duration),
        mean_gap_(static_cast<double>(options.work) * 100 /
                  (static_cast<double>(options.percent) * options.workers)),
        random_(options.seed) {}
  Fiber* first() override { return nullptr; }
  void begin(World& world) override {
    world.watches_anything = true;
    world.clock.add(source_, [this, &world] {
      while (world.clock.now() < duration_) {
        world.clock.wait_until(source_, world.clock.now() + gap());
        if (free_.empty()) free_.push_back(&supply_.take(0, 0, nullptr));
        Fiber& connection = *free_.back();
        free_.pop_back();
        connection.started = true;
        connection.number = world.clock.now();
        world.deliver_event(connection);
      }
      world.finish();
    });
  }

  Outcome run(Fiber& connection, Worker& worker) override {
    worker.compute(work_);
    worker.world().sums.response.add(worker.now() - connection.number);
    free_.push_back(&connection);
    return Outcome::parked;
  }

 private:
  // Exponential, from bits alone: the standard distribution is another one in each library.
  Time gap() {
    const double uniform = (static_cast<double>(random_() >> 11) + 1) / 9007199254740993.0;
    return std::max<Time>(1, static_cast<Time>(-std::log(uniform) * mean_gap_));
  }

  const Time work_;
  const Time duration_;
  const double mean_gap_;
  std::mt19937_64 random_;
  Seat source_;
  std::vector<Fiber*> free_;
  FiberSupply supply_;
};

}  // namespace

std::unique_ptr<Load> make_server(const LoadOptions& options) {
  return std::make_unique<Server>(options);
}

}  // namespace weft::bench::model
