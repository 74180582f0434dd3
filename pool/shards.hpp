// A pool whose capacity and queue are divided among several cores.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/waiter.hpp>
#include <weft/pool.hpp>

namespace weft::pool {

class PoolCore;

// A number per core, on a line of its own.
struct alignas(64) Turns {
  detail::Atomic<std::uint64_t> next{0};
};

// Many pools that are one to their users: a task goes to any of them, and nobody is refused or
// waits while one of them has room. README.md tells how.
// Invariants
//   I1  Who makes room in a shard takes from the line under that shard's lock. So that nobody waits
//       in it for room that was made before, who enters is first counted in waiting_, then looks
//       at all shards, and then enters, unless room_made_ has moved since: somebody made room and
//       found the line empty, or the pool was closed or opened, which makes room and does not look.
//   I2  The shares of the shards add up to the capacity and the queue_capacity.
//   I3  Whoever closes, opens, pauses or resizes notes here what is wanted, and then tells each
//       shard, which reads it under its own lock: so the last of several calls decides for all.
// Locks: shards in the order of their numbers, then lock_.
// Order
//   [hungry]  sees_work_for sets hungry_, then looks at the loads; who calls feed_the_hungry has
//             changed a load, and looks at hungry_ there. A fence (seq_cst) between the two, on
//             both sides: one of them sees the other.
class Shards {
 public:
  static constexpr std::size_t kMost = 64;  // Bits of hungry_.

  explicit Shards(const PoolOptions& options);
  ~Shards();
  Shards(const Shards&) = delete;
  Shards& operator=(const Shards&) = delete;

  [[nodiscard]] PoolCore& first() noexcept { return *cores_.front(); }

  // As those of PoolCore.
  [[nodiscard]] std::error_code start() noexcept;
  [[nodiscard]] std::error_code submit(detail::PoolItem& item, OnFull when_full,
                                       const Until& until);
  [[nodiscard]] std::size_t submit_bulk(std::span<detail::PoolItem> items);
  void close(Close mode) noexcept;
  [[nodiscard]] bool reopen();
  void resize(std::size_t capacity) noexcept;
  [[nodiscard]] std::size_t capacity() noexcept;
  [[nodiscard]] std::size_t available() noexcept;
  void pause() noexcept;
  void resume() noexcept;
  [[nodiscard]] bool wait_idle_until(const Until& until);
  [[nodiscard]] bool wait_paused_until(const Until& until);
  [[nodiscard]] bool join_until(const Until& until);
  [[nodiscard]] PoolStats stats() noexcept;
  [[nodiscard]] PoolTimings timings() noexcept;

  // By a core, with its lock held. Relaxed: who waits has counted itself before it looked at that
  // core under the same lock.
  [[nodiscard]] bool somebody_waits() const noexcept { return waiting_.load(detail::relaxed) > 0; }
  // The party that has waited longest if `fits` says that its item can be taken now; else null. Its
  // wait is ended: the caller owes it a wake.
  template <class Fits>
  [[nodiscard]] detail::Waiter* next_in_line(Fits fits) noexcept {
    lock_.lock();
    detail::Waiter* taken = nullptr;
    while (taken == nullptr && line_.has_claimable()) {
      detail::Waiter& first = *line_.front();
      if (!fits(*static_cast<const detail::PoolItem*>(first.slot))) break;
      line_.erase(first);
      if (detail::WaitList::try_claim(first)) taken = &first;
    }
    if (taken != nullptr) {
      --in_line_;
      waiting_.fetch_sub(1, detail::relaxed);
    } else if (line_.empty()) {
      ++room_made_;
    }
    note_line();
    lock_.unlock();
    return taken;
  }
  [[nodiscard]] std::size_t wanted_capacity_of(std::size_t shard) noexcept;
  [[nodiscard]] bool pause_is_wanted() noexcept;
  [[nodiscard]] bool close_is_wanted() noexcept;
  // By a worker of the shard that has found nothing to do, without its lock. True if there are
  // tasks in its queue now.
  [[nodiscard]] bool find_work(std::size_t shard) noexcept;
  // Notes that the shard has a free slot. Whether another has more tasks than slots.
  [[nodiscard]] bool sees_work_for(std::size_t shard) noexcept;
  // By a party that sees more tasks than slots in a shard, without its lock: has them taken by
  // shards that have free slots and nothing to do.
  void feed_the_hungry(std::size_t loaded) noexcept;

 private:
  // The part of `whole` that a shard gets; all parts add up to it.
  [[nodiscard]] std::size_t share(std::size_t whole, std::size_t shard) const noexcept;
  [[nodiscard]] std::size_t first_choice() noexcept;
  [[nodiscard]] std::size_t next_turn() noexcept;
  [[nodiscard]] bool offer(detail::PoolItem& item, std::size_t first, std::error_code& error);
  [[nodiscard]] std::error_code submit_blocking(detail::PoolItem& item, const Until& until);
  [[nodiscard]] std::error_code refuse(std::error_code why) noexcept;
  [[nodiscard]] bool is_full(std::size_t weight) noexcept;
  [[nodiscard]] bool somebody_is_in_line() noexcept;
  void even_out() noexcept;
  void lock_all() noexcept;
  void unlock_all() noexcept;
  void refuse_own_tasks() const;
  // Requires lock_. Relaxed: a stale reading only sends a submitter past a look at the shards that
  // have no room, or to them in vain.
  void note_line() noexcept { line_is_empty_.store(line_.empty(), detail::relaxed); }

  const PoolOptions options_;
  std::vector<std::unique_ptr<PoolCore>> cores_;
  detail::Atomic<std::uint64_t> hungry_;  // Shards that had free slots and found no task.
  std::array<Turns, 16> turns_;           // One for some of the threads each.

  alignas(64) detail::Atomic<std::size_t> waiting_{0};
  detail::Atomic<bool> line_is_empty_{true};
  detail::SpinLock lock_;  // Guards the rest.
  detail::WaitList line_;
  std::size_t in_line_ = 0;
  std::uint64_t room_made_ = 0;
  std::size_t capacity_;
  bool closed_ = false;
  bool pause_wanted_ = false;
};

}  // namespace weft::pool
