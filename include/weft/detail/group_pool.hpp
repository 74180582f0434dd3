// Where the tasks of a group run, if not each in a fiber of its own.
#pragma once

#include <concepts>
#include <system_error>
#include <utility>
#include <weft/detail/task.hpp>
#include <weft/until.hpp>

namespace weft {

class FiberPool;

namespace detail {

// The calls that a TaskGroup makes of a FiberPool. The pool hands them down when the group is made,
// so neither the header of groups nor a program whose groups have no pool needs to know pools.
class GroupPool {
 public:
  // Each does what the function of FiberPool does that is called so.
  struct Calls {
    std::error_code (*submit)(FiberPool& pool, Task&& task);
    std::error_code (*try_submit)(FiberPool& pool, Task&& task);
    std::error_code (*submit_until)(FiberPool& pool, const Until& until, Task&& task);
    // Calls `wait` and returns its answer. If the caller is a task of the pool, its slot is free
    // for others meanwhile.
    bool (*wait_without_slot)(FiberPool& pool, bool (*wait)(void* argument) noexcept,
                              void* argument) noexcept;
  };

  // No pool.
  GroupPool() noexcept = default;
  GroupPool(FiberPool& pool, const Calls& calls) noexcept : pool_(&pool), calls_(&calls) {}

  [[nodiscard]] explicit operator bool() const noexcept { return pool_ != nullptr; }
  // Only with a pool.
  [[nodiscard]] std::error_code submit(Task&& task) const {
    return calls_->submit(*pool_, std::move(task));
  }
  [[nodiscard]] std::error_code try_submit(Task&& task) const {
    return calls_->try_submit(*pool_, std::move(task));
  }
  [[nodiscard]] std::error_code submit_until(const Until& until, Task&& task) const {
    return calls_->submit_until(*pool_, until, std::move(task));
  }
  // Without a pool too: then it is just a call of `wait`.
  template <std::invocable Wait>
  bool wait_without_slot(Wait wait) const noexcept {
    if (pool_ == nullptr) return wait();
    return calls_->wait_without_slot(
        *pool_, [](void* argument) noexcept -> bool { return (*static_cast<Wait*>(argument))(); },
        &wait);
  }

 private:
  FiberPool* pool_ = nullptr;
  const Calls* calls_ = nullptr;
};

// Implemented by the pool.
[[nodiscard]] GroupPool group_pool(FiberPool& pool) noexcept;

}  // namespace detail
}  // namespace weft
