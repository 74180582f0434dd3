// Stands in for scheduler/scheduler.hpp: what the trimmer of stacks asks of a scheduler.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "fibers/fiber.hpp"
#include "fibers/gate.hpp"
#include "scheduler/worker.hpp"

namespace weft::scheduler {

// Of the records of fibers and of the stacks, whose lock nobody else wants here.
class Records {
 public:
  explicit Records(std::vector<fibers::Fiber*> all) : all_(std::move(all)) {}
  template <class Visit>
  [[nodiscard]] bool visit_some(std::size_t& place, std::size_t count, Visit visit) {
    for (bool more = true; more && count > 0 && place < all_.size(); --count, ++place) {
      more = visit(*all_[place]);
    }
    return place >= all_.size();
  }
  template <class Do>
  void while_locked(Do something) {
    something();
  }

 private:
  std::vector<fibers::Fiber*> all_;
};

struct Stacks {
  [[nodiscard]] Stacks& space() noexcept { return *this; }
  [[nodiscard]] static bool has_header_at(const fibers::Stack* /*stack*/) noexcept { return true; }
};

class Scheduler {
 public:
  Scheduler(unsigned workers, std::vector<fibers::Fiber*> records) : records_(std::move(records)) {
    for (unsigned i = 0; i < workers; ++i) workers_.push_back(std::make_unique<Worker>());
  }
  [[nodiscard]] Records& fibers() noexcept { return records_; }
  [[nodiscard]] Stacks& stacks() noexcept { return stacks_; }
  [[nodiscard]] std::size_t most_workers() const noexcept { return workers_.size(); }
  [[nodiscard]] const std::vector<std::unique_ptr<Worker>>& workers() const noexcept {
    return workers_;
  }
  // Whether a long time is waited for depends on this only.
  [[nodiscard]] bool all_are_asleep() const noexcept { return true; }
  [[nodiscard]] bool is_asleep(const Worker& worker) const noexcept;

 private:
  Records records_;
  Stacks stacks_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace weft::scheduler
