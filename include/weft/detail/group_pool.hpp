// Where the tasks of a group run, if not each in a fiber of its own.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <utility>
#include <weft/accepted.hpp>
#include <weft/detail/task.hpp>
#include <weft/until.hpp>

namespace weft {

class FiberPool;
struct SubmitOptions;

namespace detail {

// How long a submission waits for room: as on_full says, not at all, or until its limit.
enum class Room : std::uint8_t { as_configured, now, awaited };

// The calls that a TaskGroup makes of a FiberPool. The pool hands them down when the group is made,
// so neither the header of groups nor a program whose groups have no pool needs to know pools.
class GroupPool {
 public:
  // `submit` does as FiberPool::submit(), try_submit() or submit_until(), by `room`, and leaves a
  // refused task as it was. The rest do as FiberPool's functions of these names.
  struct Calls {
    Accepted (*submit)(FiberPool& pool, Room room, const Until& until, Task& task);
    // Stop requests of the options and of the pool are passed on to `own`, the task's, if it has
    // one.
    Accepted (*submit_with)(FiberPool& pool, const SubmitOptions& options, std::stop_source own,
                            Room room, const Until& until, Task& task);
    std::size_t (*capacity)(const FiberPool& pool) noexcept;
    std::stop_token (*stop_token)(const FiberPool& pool) noexcept;
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
  [[nodiscard]] Accepted submit(Room room, const Until& until, Task& task) const {
    return calls_->submit(*pool_, room, until, task);
  }
  [[nodiscard]] Accepted submit(const SubmitOptions& options, std::stop_source own, Room room,
                                const Until& until, Task& task) const {
    return calls_->submit_with(*pool_, options, std::move(own), room, until, task);
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return calls_->capacity(*pool_); }
  [[nodiscard]] std::stop_token stop_token() const noexcept { return calls_->stop_token(*pool_); }
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
