// Pools under everything at once: every call, from fibers, threads and their own tasks, at random.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/stress/workload.hpp"
#include "tests/support/pool_books.hpp"
#include "tests/support/random.hpp"

namespace {

using namespace std::chrono_literals;
using weft::Close;
using weft::Deadline;
using weft::Errc;
using weft::FiberPool;
using weft::OnFull;
using weft::PoolOptions;
using weft::PoolStats;
using weft::test::Concurrency;
using weft::test::Progress;
using weft::test::Random;

constexpr std::size_t kMostSlots = 8;
constexpr int kMostNested = 2;

std::chrono::microseconds hardly_any_time(Random& random) {
  return std::chrono::microseconds(random.below(50));
}

// One pool and the books about it. A task acts on its own pool only: slots are lent there, while
// tasks of two bounded pools that wait for each other could wait for ever.
class Target {
 public:
  Target(Progress& progress, PoolOptions options)
      : progress_(progress),
        runs_in_callers_(options.on_full == OnFull::caller_runs),
        pool_(handling_exceptions(std::move(options))) {}

  // `nested`: 0 for a party of its own, else how deep the acting task is in others.
  void act(Random& random, int nested) {
    progress_.made();
    switch (random.below(16)) {
      case 0:
        return resize(random);
      case 1:
        return pause(random, nested);
      case 2:
        return reopen(random, nested);
      case 3:
        return look(random, nested);
      case 4:
        return submit_and_stop(random, nested);
      case 5:
      case 6:
        return count(pool_.try_submit(job(random, nested)));
      case 7:
      case 8:
        return count(pool_.submit_for(hardly_any_time(random), job(random, nested)));
      case 9:
        return call([&] { pool_.run(job(random, nested)); });
      case 10:
      case 11:
        return handle(random, nested);
      default:
        return count(pool_.submit(job(random, nested)));
    }
  }

  void end_and_check_books() {
    pool_.close(Close::drain);
    pool_.join();
    const PoolStats stats = pool_.stats();
    CHECK(weft::test::balanced(stats));
    CHECK(stats.submitted == accepted_.load());
    CHECK(stats.rejected == refused_.load());
    CHECK(stats.completed + stats.failed == ran_.load());
    CHECK(stats.completed + stats.failed + stats.cancelled == stats.submitted);
    CHECK(stats.live + stats.blocked + stats.lent == 0);
    CHECK(stats.started == stats.retired);
    CHECK(made_.load() == destroyed_.load());
    CHECK(gauge_.most() <= kMostSlots);
  }

 private:
  // A task that does something at random, and is destroyed once, whatever becomes of it.
  class Job {
   public:
    Job(Target& target, std::uint64_t stream, int nested)
        : target_(&target), stream_(stream), nested_(nested) {
      target.made_.fetch_add(1);
    }
    Job(Job&& other) noexcept
        : target_(std::exchange(other.target_, nullptr)),
          stream_(other.stream_),
          nested_(other.nested_) {}
    Job& operator=(Job&&) = delete;
    ~Job() {
      if (target_ != nullptr) target_->destroyed_.fetch_add(1);
    }
    void operator()() {
      Random random(stream_);
      target_->work(random, nested_);
    }

   private:
    Target* target_;
    std::uint64_t stream_;
    int nested_;
  };

  PoolOptions handling_exceptions(PoolOptions options) {
    options.on_exception = [this](std::exception_ptr thrown) {
      const std::uint64_t number = handled_.fetch_add(1);
      if (number % 4 == 0) weft::this_fiber::yield();
      if (number == 1000) std::rethrow_exception(std::move(thrown));  // One line on stderr.
    };
    return options;
  }

  [[nodiscard]] Job job(Random& random, int nested) { return Job(*this, random(), nested + 1); }

  void work(Random& random, int nested) {
    ran_.fetch_add(1);
    if (nested <= kMostNested && random.one_in(4)) act(random, nested);
    {
      const auto stay = stay_if_bounded();
      if (random.one_in(3)) weft::this_fiber::yield();
      if (random.one_in(50)) weft::this_fiber::sleep_for(hardly_any_time(random));
    }
    if (random.one_in(8)) throw 1;
  }
  // Tasks that run in their callers are beyond the capacity.
  std::unique_ptr<Concurrency::Stay> stay_if_bounded() {
    return runs_in_callers_ ? nullptr : std::make_unique<Concurrency::Stay>(gauge_);
  }

  void count(std::error_code error) {
    (error ? refused_ : accepted_).fetch_add(1);
    if (error && error != Errc::closed && error != Errc::full && error != Errc::timed_out &&
        error != Errc::cancelled && error != Errc::too_many_waiting) {
      FAIL_CHECK("an error that nobody expects: ", error.message());
    }
  }
  // A call that throws instead of returning a code.
  template <class Call>
  void call(Call make) {
    try {
      make();
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::operation_canceled) return count(error.code());
    } catch (int) {
      // The task's own.
    }
    count({});
  }
  void handle(Random& random, int nested) {
    call([&] {
      auto task = pool_.async(job(random, nested));
      if (random.one_in(3)) weft::this_fiber::yield();
      if (random.one_in(3)) (void)task.cancel();
      if (random.one_in(3)) (void)task.wait_for(hardly_any_time(random));
      if (random.one_in(2)) task.get();
    });
  }
  void submit_and_stop(Random& random, int nested) {
    std::stop_source source;
    weft::go([source]() mutable {
      weft::this_fiber::yield();
      source.request_stop();
    });
    const std::stop_token token = source.get_token();
    const Deadline deadline =
        random.one_in(2) ? Deadline::never() : Deadline::after(hardly_any_time(random));
    count(pool_.submit_until({deadline, token}, job(random, nested)));
  }

  void resize(Random& random) { pool_.resize(1 + random.below(kMostSlots)); }
  void pause(Random& random, int nested) {
    pool_.pause();
    if (random.one_in(2)) weft::this_fiber::yield();
    if (nested == 0 && random.one_in(2)) (void)pool_.wait_paused_for(hardly_any_time(random));
    pool_.resume();
  }
  void reopen(Random& random, int nested) {
    if (!random.one_in(4)) return;
    constexpr std::array kModes{Close::drain, Close::discard, Close::cancel};
    pool_.close(kModes[random.below(kModes.size())]);
    if (random.one_in(2)) weft::this_fiber::yield();
    if (nested == 0 && random.one_in(2)) (void)pool_.join_for(hardly_any_time(random));
    pool_.reopen();
  }
  void look(Random& random, int nested) {
    const PoolStats stats = pool_.stats();
    if (!weft::test::balanced(stats)) FAIL_CHECK("the books do not balance");
    if (stats.busy > kMostSlots) FAIL_CHECK("more run than the capacity");
    if (pool_.available() > kMostSlots) FAIL_CHECK("more slots are free than there are");
    if (nested == 0) (void)pool_.wait_idle_for(hardly_any_time(random));
  }

  Progress& progress_;
  const bool runs_in_callers_;
  Concurrency gauge_;
  std::atomic<std::uint64_t> made_{0};
  std::atomic<std::uint64_t> destroyed_{0};
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> ran_{0};
  std::atomic<std::uint64_t> handled_{0};
  FiberPool pool_;
};

// Pools of every kind.
std::vector<std::unique_ptr<Target>> make_targets(Progress& progress) {
  const std::array options{
      PoolOptions{.capacity = 1, .idle_timeout = 100us},
      PoolOptions{.capacity = 3, .queue_capacity = 2, .max_blocked = 3, .idle_timeout = 1ms},
      PoolOptions{.capacity = 4, .min_workers = 2, .queue_capacity = weft::kUnlimited},
      PoolOptions{.capacity = 2, .on_full = OnFull::reject, .idle_timeout = weft::kNever},
      PoolOptions{.capacity = 3, .queue_capacity = 40, .on_full = OnFull::caller_runs},
      PoolOptions{.capacity = 2, .queue_capacity = 3, .on_full = OnFull::drop_oldest},
  };
  std::vector<std::unique_ptr<Target>> targets;
  for (const PoolOptions& each : options) {
    targets.push_back(std::make_unique<Target>(progress, each));
  }
  return targets;
}

TEST_SUITE_BEGIN("stress/pool");

THREAD_TEST_CASE("pools keep their books and their bounds, whatever is done to them") {
  Progress progress(runtime);
  auto targets = make_targets(progress);
  const auto live = [&](std::uint64_t stream) {
    Random random(stream);
    while (!progress.time_is_up()) targets[random.below(targets.size())]->act(random, 0);
  };
  std::vector<weft::JoinHandle<void>> fibers;
  for (std::uint64_t i = 0; i < 24; ++i) fibers.push_back(weft::spawn([&live, i] { live(i); }));
  std::vector<std::thread> threads;
  for (std::uint64_t i = 100; i < 103; ++i) threads.emplace_back(live, i);
  for (std::thread& thread : threads) thread.join();
  for (auto& fiber : fibers) fiber.join();
  for (auto& target : targets) target->end_and_check_books();
  CHECK(progress.units() > 0);
}

// What is left to do when the last handle of a pool goes is done by whoever destroys it.
FIBER_TEST_CASE("pools that come and go under fire leave nothing behind") {
  Progress progress(runtime);
  Random random(1);
  while (!progress.time_is_up()) {
    std::atomic<std::uint64_t> ran{0}, accepted{0};
    {
      FiberPool pool({.capacity = 1 + random.below(4),
                      .queue_capacity = random.below(4),
                      .idle_timeout = std::chrono::microseconds(1 + random.below(200))});
      std::vector<weft::JoinHandle<void>> submitters;
      for (std::uint64_t s = random.below(5); s > 0; --s) {
        submitters.push_back(weft::spawn([&, stream = random()] {
          Random own(stream);
          for (std::uint64_t i = own.below(20); i > 0; --i) {
            const auto error = pool.submit([&, yields = own.one_in(3)] {
              if (yields) weft::this_fiber::yield();
              ran.fetch_add(1);
            });
            if (!error) accepted.fetch_add(1);
            if (own.one_in(5)) weft::this_fiber::sleep_for(hardly_any_time(own));
          }
        }));
      }
      const bool closes_early = random.one_in(3);
      if (closes_early) pool.close(Close::drain);
      submitters.clear();  // Joins them.
    }
    if (ran.load() != accepted.load()) FAIL_CHECK("an accepted task has not run");
    progress.made();
  }
}

TEST_SUITE_END();

}  // namespace
