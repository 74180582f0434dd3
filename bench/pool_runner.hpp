// Runs the tasks of the pool workloads.
#pragma once

#include <cstddef>
#include <memory>
#include <system_error>
#include <utility>
#include <weft/go.hpp>
#include <weft/pool.hpp>

#include "bench/workload.hpp"

namespace weft::bench {

// Runs tasks in a pool, or without one when `pool` is null.
class Runner {
 public:
  Runner(const Request& request, std::size_t capacity, std::size_t queue)
      : Runner(request, {.capacity = capacity, .queue_capacity = queue}) {}
  Runner(const Request& request, const PoolOptions& options) {
    if (request.pool == "fiber_pool") pool_ = std::make_unique<FiberPool>(options);
  }

  template <class F>
  void submit(F&& task) {
    if (pool_ == nullptr) {
      go(std::forward<F>(task));
    } else if (const std::error_code error = pool_->submit(std::forward<F>(task))) {
      throw std::system_error(error);
    }
  }

 private:
  std::unique_ptr<FiberPool> pool_;
};

}  // namespace weft::bench
