// Keeps tasks with attributes for reuse.
#pragma once

#include <cstddef>
#include <utility>
#include <weft/detail/attributed_job.hpp>

namespace weft::pool {

// A list of reusable tasks with attributes; the owner's lock guards it.
class SpareTasks {
 public:
  SpareTasks() noexcept = default;
  SpareTasks(const SpareTasks&) = delete;
  SpareTasks& operator=(const SpareTasks&) = delete;
  ~SpareTasks() {
    while (detail::AttributedTask* const spare = take()) spare->release_reference();
  }

  // Returns null if the list is empty.
  [[nodiscard]] detail::AttributedTask* take() noexcept {
    if (first_ == nullptr) return nullptr;
    --count_;
    return static_cast<detail::AttributedTask*>(std::exchange(first_, first_->next)->job);
  }
  // Keeps the job of a task that has ended, if the job can be reused. Returns false if the caller
  // must free the job.
  [[nodiscard]] bool keep(detail::TaskAttributes& attributes) noexcept {
    if (count_ == kMost || !attributes.job->make_reusable()) return false;
    attributes.next = std::exchange(first_, &attributes);
    ++count_;
    return true;
  }

 private:
  static constexpr std::size_t kMost = 256;

  detail::TaskAttributes* first_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace weft::pool
