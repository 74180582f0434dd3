// Contains parts of the workloads: Boost.Fiber's stacks, workers and fibers, and a wait group.
#pragma once

#include <malloc.h>

#include <atomic>
#include <boost/fiber/algo/work_stealing.hpp>
#include <boost/fiber/all.hpp>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rivals {

namespace fibers = boost::fibers;

constexpr std::size_t kStackBytes = 64 * 1024;

// A stack allocator, of which every fiber holds a copy. It has no pool if stacks come from malloc.
class Stacks {
 public:
  explicit Stacks(fibers::pooled_fixedsize_stack* pool) : pool_(pool) {}
  boost::context::stack_context allocate() {
    return pool_ != nullptr ? pool_->allocate() : fibers::fixedsize_stack(kStackBytes).allocate();
  }
  void deallocate(boost::context::stack_context& stack) noexcept {
    if (pool_ != nullptr) {
      pool_->deallocate(stack);
    } else {
      fibers::fixedsize_stack(kStackBytes).deallocate(stack);
    }
  }

 private:
  fibers::pooled_fixedsize_stack* pool_;
};

fibers::pooled_fixedsize_stack* stack_pool = nullptr;  // Null: use malloc.

// `post` queues the new fiber; `dispatch` runs it at once, before its parent continues.
template <typename Body>
fibers::fiber spawn(fibers::launch launch, Body body) {
  return fibers::fiber(launch, std::allocator_arg, Stacks(stack_pool), std::move(body));
}

// The calling thread and `workers - 1` more steal from each other while this object lives.
class StealingWorkers {
 public:
  explicit StealingWorkers(int workers) {
    for (int i = 1; i < workers; ++i) {
      threads_.emplace_back([this, workers] { run(workers); });
    }
    join_scheduling(workers);
  }
  ~StealingWorkers() {
    {
      std::unique_lock lock(mutex_);
      stopped_ = true;
    }
    stop_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  StealingWorkers(const StealingWorkers&) = delete;
  StealingWorkers& operator=(const StealingWorkers&) = delete;

 private:
  static void join_scheduling(int workers) {
    if (workers == 1) return;  // The default scheduler is round_robin.
    fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(workers);
  }
  void run(int workers) {
    join_scheduling(workers);
    std::unique_lock lock(mutex_);
    stop_.wait(lock, [this] { return stopped_; });
  }

  fibers::mutex mutex_;
  fibers::condition_variable stop_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

// Boost.Fiber has no wait group; this is the cheapest one that can be built from its parts.
class WaitGroup {
 public:
  // Relaxed: the later spawns publish the count.
  void add(std::int64_t count) { left_.fetch_add(count, std::memory_order_relaxed); }
  void done() {
    // [left] Each release pairs with the acquire of the last decrement. The lock of the last fiber
    // then publishes to the waiter what all fibers wrote.
    if (left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    std::unique_lock lock(mutex_);
    finished_ = true;
    all_done_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    all_done_.wait(lock, [this] { return finished_; });
    finished_ = false;
  }

 private:
  std::atomic<std::int64_t> left_{0};
  fibers::mutex mutex_;
  fibers::condition_variable all_done_;
  bool finished_ = false;
};

}  // namespace rivals
