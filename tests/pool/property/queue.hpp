// The queue of accepted tasks in a model pool.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "tests/pool/property/op.hpp"

namespace weft::test {

[[nodiscard]] inline std::size_t weight_of(const std::vector<Op>& ops) {
  std::size_t sum = 0;
  for (const Op& op : ops) sum += op.options.weight;
  return sum;
}

// Holds the tasks in the order of acceptance; everything else is computed on request.
class ModelQueue {
 public:
  struct Queued {
    Op op;
    bool cancelled = false;
  };

  [[nodiscard]] std::size_t size() const { return tasks_.size(); }
  [[nodiscard]] bool empty() const { return tasks_.empty(); }
  [[nodiscard]] std::size_t weight() const {
    std::size_t sum = 0;
    for (const Queued& task : tasks_) sum += task.op.options.weight;
    return sum;
  }
  void push(const Op& op) { tasks_.push_back({op}); }
  [[nodiscard]] Queued take_oldest() {
    const Queued oldest = tasks_.front();
    tasks_.pop_front();
    return oldest;
  }
  template <class Matches>
  [[nodiscard]] Queued* find(Matches matches) {
    const auto it = std::find_if(tasks_.begin(), tasks_.end(),
                                 [&](const Queued& task) { return matches(task.op); });
    return it == tasks_.end() ? nullptr : &*it;
  }
  // Call it when the whole queue was dropped.
  void forget_turns() { passed_over_ = {}; }

  // Returns whether a task with that key would have to wait for another task.
  [[nodiscard]] bool is_held(int key, const std::vector<Op>& running) const {
    const auto has_key = [key](const Op& op) { return op.options.key == key; };
    return key != 0 && (std::any_of(running.begin(), running.end(), has_key) ||
                        std::any_of(tasks_.begin(), tasks_.end(),
                                    [&](const Queued& task) { return has_key(task.op); }));
  }
  [[nodiscard]] std::size_t held_up_weight(const std::vector<Op>& running) const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (!is_startable(i, running)) sum += tasks_[i].op.options.weight;
    }
    return sum;
  }
  // Requires that there is such a task.
  [[nodiscard]] Queued take_oldest_held_up(const std::vector<Op>& running) {
    std::size_t i = 0;
    while (is_startable(i, running)) ++i;
    const Queued oldest = tasks_[i];
    tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(i));
    return oldest;
  }
  // Returns how many tasks are not held up by a task of their key.
  [[nodiscard]] std::size_t startable(const std::vector<Op>& running) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < tasks_.size(); ++i) count += is_startable(i, running) ? 1 : 0;
    return count;
  }
  [[nodiscard]] std::optional<Op> next(const std::vector<Op>& running) const {
    const auto level = next_level(running);
    if (!level) return std::nullopt;
    return tasks_[*first_of(*level, running)].op;
  }
  // Requires that there is a next task.
  [[nodiscard]] Queued take_next(const std::vector<Op>& running) {
    const std::size_t taken = *next_level(running);
    if (has_terms_to_start(running)) {  // Otherwise there is no choice.
      passed_over_[taken] = 0;
      for (std::size_t lower = taken + 1; lower < kLevels; ++lower) {
        if (first_of(lower, running)) ++passed_over_[lower];
      }
    }
    const std::size_t position = *first_of(taken, running);
    const Queued next = tasks_[position];
    tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(position));
    return next;
  }

 private:
  static constexpr std::size_t kLevels = 3;
  static constexpr int kPatience = 16;

  [[nodiscard]] bool is_startable(std::size_t position, const std::vector<Op>& running) const {
    const int key = tasks_[position].op.options.key;
    const auto holds_it_up = [key](const Op& other) { return other.options.key == key; };
    if (key == 0) return true;
    if (std::any_of(running.begin(), running.end(), holds_it_up)) return false;
    for (std::size_t i = 0; i < position; ++i) {
      if (holds_it_up(tasks_[i].op)) return false;
    }
    return true;
  }
  [[nodiscard]] bool has_terms_to_start(const std::vector<Op>& running) const {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].op.options.are_set && is_startable(i, running)) return true;
    }
    return false;
  }
  [[nodiscard]] std::optional<std::size_t> first_of(std::size_t level,
                                                    const std::vector<Op>& running) const {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (static_cast<std::size_t>(tasks_[i].op.options.priority) != level) continue;
      if (is_startable(i, running)) return i;
    }
    return std::nullopt;
  }
  // Returns the highest level, unless a lower level has been passed over often enough.
  [[nodiscard]] std::optional<std::size_t> next_level(const std::vector<Op>& running) const {
    std::optional<std::size_t> highest;
    for (std::size_t level = kLevels; level-- > 0;) {
      if (first_of(level, running)) highest = level;
    }
    for (std::size_t level = kLevels; level-- > 0;) {
      if (passed_over_[level] >= kPatience && first_of(level, running)) return level;
    }
    return highest;
  }

  std::deque<Queued> tasks_;
  std::array<int, kLevels> passed_over_{};
};

}  // namespace weft::test
