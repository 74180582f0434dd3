// Makes all kinds of calls of a pool at random, and checks the counts of the pool.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <stop_token>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/stress/workload.hpp"
#include "tests/support/pool_books.hpp"
#include "tests/support/random.hpp"

namespace weft::test {

inline constexpr std::size_t kMostSlots = 8;

[[nodiscard]] inline std::chrono::microseconds hardly_any_time(Random& random) {
  return std::chrono::microseconds(random.below(50));
}

// A task acts only on its own pool, where a wait gives back its slots. Tasks of two bounded pools
// that wait for each other could wait forever.
class PoolTarget {
 public:
  // Makes the pool with its options; `parent` is set for a sub-pool.
  PoolTarget(Progress& progress, PoolOptions options, PoolTarget* parent = nullptr)
      : progress_(progress),
        parent_(parent),
        runs_in_callers_(options.on_full == OnFull::caller_runs),
        pool_(completed(std::move(options))) {}

  // `nested` is 0 for a caller outside of tasks, otherwise the depth of the acting task in other
  // tasks.
  void act(Random& random, int nested) {
    progress_.made();
    switch (random.below(24)) {
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
        return count(pool_.submit_until(hardly_any_time(random), job(random, nested)));
      case 9:
        return call([&] { pool_.run(job(random, nested)); });
      case 10:
      case 11:
        return handle(random, nested);
      case 12:
        return bulk(random, nested);
      case 13:
      case 14:
      case 15:
      case 16:
        return submit_on_terms(random, nested);
      case 17:
      case 18:
        return handle_on_terms(random, nested);
      default:
        return count(pool_.submit(job(random, nested)));
    }
  }

  void end_and_check_books() {
    pool_.wait_idle();  // A task that has closed the pool would later reopen it.
    pool_.close(Close::drain);
    pool_.join();
    const PoolStats stats = pool_.stats();
    CHECK(balanced(stats));
    CHECK(stats.submitted == accepted_.load());
    CHECK(stats.rejected == refused_.load());
    CHECK(stats.completed + stats.failed == ran_.load());
    CHECK(stats.in_sub_pools == 0);
    CHECK(stats.completed + stats.failed + stats.cancelled == stats.submitted);
    CHECK(stats.live + stats.blocked + stats.released == 0);
    CHECK(stats.started == stats.retired);
    CHECK(made_.load() == destroyed_.load());
    CHECK(gauge_.most() <= kMostSlots);
    for (const auto& inside : of_key_) CHECK(inside.most() <= 1);
  }

 private:
  static constexpr int kMostNested = 2;
  static constexpr std::size_t kKeys = 3;
  static constexpr std::size_t kMostWeight = 3;

  // Holds the properties of a task on which its pool's counts depend.
  struct Place {
    int nested = 1;
    std::size_t weight = 1;
    std::size_t key = kKeys;  // No key.
  };

  // Is a task that performs a random operation. The test counts that each task is destroyed once,
  // whatever its outcome.
  class Job {
   public:
    Job(PoolTarget& target, std::uint64_t stream, Place place)
        : target_(&target), stream_(stream), place_(place) {
      target.made_.fetch_add(1);
    }
    Job(Job&& other) noexcept
        : target_(std::exchange(other.target_, nullptr)),
          stream_(other.stream_),
          place_(other.place_) {}
    Job& operator=(Job&&) = delete;
    ~Job() {
      if (target_ != nullptr) target_->destroyed_.fetch_add(1);
    }
    void operator()() {
      Random random(stream_);
      target_->work(random, place_);
    }

   private:
    PoolTarget* target_;
    std::uint64_t stream_;
    Place place_;
  };
  // Is a Job for a pool that sends its tasks stop requests.
  struct StoppableJob {
    Job job;
    void operator()(const std::stop_token& token) {
      job();
      if (token.stop_requested()) weft::this_fiber::yield();
    }
  };

  // Holds the options of a task, and its entry in the counts.
  struct Attributes {
    SubmitOptions options;
    Place place;
  };
  Attributes random_attributes(Random& random, int nested) {
    Attributes attributes;
    attributes.options.priority = static_cast<Priority>(random.below(3));
    attributes.place.nested = nested + 1;
    // If a task waited for a task of another key, the two could wait for each other.
    if (nested == 0 && random.one_in(3)) {
      attributes.place.key = random.below(kKeys);
      attributes.options.key = attributes.place.key;
    }
    if (random.one_in(4)) attributes.place.weight = 1 + random.below(kMostWeight);
    attributes.options.weight = attributes.place.weight;
    if (random.one_in(4)) attributes.options.deadline = Deadline::after(hardly_any_time(random));
    if (random.one_in(6)) attributes.options.stop = token_of_a_stop();
    return attributes;
  }
  // Returns a token of a stop that another caller requests later.
  static std::stop_token token_of_a_stop() {
    std::stop_source source;
    go([source]() mutable {
      this_fiber::yield();
      source.request_stop();
    });
    return source.get_token();
  }

  PoolOptions completed(PoolOptions options) {
    if (parent_ != nullptr) options.parent = &parent_->pool_;
    options.on_exception = [this](std::exception_ptr thrown) {
      const std::uint64_t number = handled_.fetch_add(1);
      if (number % 4 == 0) this_fiber::yield();
      if (number == 1000) std::rethrow_exception(std::move(thrown));  // Writes a line to stderr.
    };
    return options;
  }

  [[nodiscard]] Job job(Random& random, int nested) {
    return Job(*this, random(), {.nested = nested + 1});
  }

  void work(Random& random, const Place& place) {
    ran_.fetch_add(1);
    if (place.nested <= kMostNested && random.one_in(4)) act(random, place.nested);
    {
      const auto stays = stays_of(place);
      if (random.one_in(3)) this_fiber::yield();
      if (random.one_in(50)) this_fiber::sleep_for(hardly_any_time(random));
    }
    if (random.one_in(8)) throw 1;
  }
  using Stays = std::vector<std::unique_ptr<Concurrency::Stay>>;
  Stays stays_of(const Place& place) {
    Stays stays;
    if (place.key < kKeys) {
      stays.push_back(std::make_unique<Concurrency::Stay>(of_key_[place.key]));
    }
    // Tasks that run in their callers do not count against the capacity.
    if (runs_in_callers_) return stays;
    for (std::size_t i = 0; i < place.weight; ++i) {
      stays.push_back(std::make_unique<Concurrency::Stay>(gauge_));
    }
    // For the parent, a heavy task of a sub-pool counts as one task.
    if (parent_ != nullptr) {
      stays.push_back(std::make_unique<Concurrency::Stay>(parent_->gauge_));
    }
    return stays;
  }

  void count(std::error_code error) {
    (error ? refused_ : accepted_).fetch_add(1);
    if (error && error != Errc::closed && error != Errc::full && error != Errc::timed_out &&
        error != Errc::cancelled && error != Errc::too_many_waiting && error != Errc::too_heavy) {
      FAIL_CHECK("an error that nobody expects: ", error.message());
    }
  }
  // Makes a call that throws instead of returning a code.
  template <class Call>
  void call(Call make) {
    try {
      make();
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::operation_canceled) return count(error.code());
    } catch (int) {
      // The task has thrown it.
    }
    count({});
  }
  void handle(Random& random, int nested) {
    call([&] {
      auto task = pool_.async(job(random, nested));
      use(random, task);
      if (random.one_in(2)) task.get();
    });
  }
  static void use(Random& random, PoolTask<void>& task) {
    if (random.one_in(3)) this_fiber::yield();
    if (random.one_in(3)) (void)task.cancel();
    if (random.one_in(3)) (void)task.wait_until(hardly_any_time(random));
  }
  // A get() may also throw the exception of a refusal.
  void handle_on_terms(Random& random, int nested) {
    const Attributes attributes = random_attributes(random, nested);
    PoolTask<void> task;
    try {
      task = pool_.async(attributes.options, Job(*this, random(), attributes.place));
    } catch (const std::system_error& error) {
      return count(error.code());
    }
    count({});
    use(random, task);
    if (random.one_in(2)) return;
    try {
      task.get();
    } catch (const std::system_error&) {
    } catch (int) {
    }
  }
  void submit_on_terms(Random& random, int nested) {
    Attributes attributes = random_attributes(random, nested);
    Job job(*this, random(), attributes.place);
    switch (random.below(4)) {
      case 0:
        return count(pool_.try_submit(attributes.options, std::move(job)));
      case 1:
        return count(pool_.submit_until(attributes.options,
                                        Deadline::after(hardly_any_time(random)), std::move(job)));
      case 2:
        attributes.options.timeout = std::chrono::microseconds(1 + random.below(50));
        return count(pool_.submit(attributes.options, StoppableJob{std::move(job)}));
      default:
        return count(pool_.submit(attributes.options, std::move(job)));
    }
  }
  void bulk(Random& random, int nested) {
    std::vector<Job> jobs;
    for (std::uint64_t i = random.below(20); i > 0; --i) jobs.push_back(job(random, nested));
    const std::size_t size = jobs.size();
    const std::size_t accepted = pool_.submit_bulk(std::move(jobs)).value;
    accepted_.fetch_add(accepted);
    if (accepted < size) refused_.fetch_add(1);
  }
  void submit_and_stop(Random& random, int nested) {
    const std::stop_token token = token_of_a_stop();
    const Deadline deadline =
        random.one_in(2) ? Deadline::never() : Deadline::after(hardly_any_time(random));
    count(pool_.submit_until({deadline, token}, job(random, nested)));
  }

  void resize(Random& random) {
    // Sometimes many in a row.
    for (std::uint64_t i = random.one_in(8) ? 50 : 1; i > 0; --i) {
      pool_.resize(1 + random.below(kMostSlots));
    }
  }
  void pause(Random& random, int nested) {
    pool_.pause();
    if (random.one_in(2)) this_fiber::yield();
    if (nested == 0 && random.one_in(2)) (void)pool_.wait_paused_until(hardly_any_time(random));
    pool_.resume();
  }
  void reopen(Random& random, int nested) {
    if (!random.one_in(4)) return;
    constexpr std::array kModes{Close::drain, Close::discard, Close::cancel};
    pool_.close(kModes[random.below(kModes.size())]);
    if (random.one_in(2)) this_fiber::yield();
    if (nested == 0 && random.one_in(2)) (void)pool_.join_until(hardly_any_time(random));
    pool_.reopen();
  }
  void look(Random& random, int nested) {
    const PoolStats stats = pool_.stats();
    if (!balanced(stats)) FAIL_CHECK("the books do not balance");
    if (stats.busy > kMostSlots) FAIL_CHECK("more run than the capacity");
    if (pool_.available_hint() > kMostSlots) FAIL_CHECK("more slots are free than there are");
    if (nested > 0) return;
    (void)pool_.wait_idle_until(hardly_any_time(random));
    const std::uint64_t ended = stats.completed + stats.failed;
    (void)pool_.wait_for_completed(ended + random.below(10), hardly_any_time(random));
  }

  Progress& progress_;
  PoolTarget* const parent_;
  const bool runs_in_callers_;
  Concurrency gauge_;
  std::array<Concurrency, kKeys> of_key_;
  std::atomic<std::uint64_t> made_{0};
  std::atomic<std::uint64_t> destroyed_{0};
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> ran_{0};
  std::atomic<std::uint64_t> handled_{0};
  FiberPool pool_;
};

}  // namespace weft::test
