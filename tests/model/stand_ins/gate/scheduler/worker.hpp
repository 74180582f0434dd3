// Stands in for scheduler/worker.hpp: what the trimmer of stacks asks of a worker.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

class Counter {
 public:
  void add_one() noexcept { value_.store(value_.load(detail::relaxed) + 1, detail::release); }
  [[nodiscard]] std::uint64_t get() const noexcept;

 private:
  detail::Atomic<std::uint64_t> value_{0};
};

class Worker {
 public:
  struct Counters {
    Counter switches;
  };
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] Counters& counters() noexcept { return counters_; }

 private:
  Counters counters_;
};

}  // namespace weft::scheduler
