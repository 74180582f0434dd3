// Pools inside pools: what a sub-pool is to the pool that hosts it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <weft/detail/atomic.hpp>
#include <weft/detail/pool_job.hpp>
#include <weft/detail/spin_lock.hpp>

#include "pool/blocked_submitters.hpp"

namespace weft::pool {

class PoolCore;

// How a visit came to be accepted by the host.
enum class Arrival : std::uint8_t {
  called,     // At once: the sub-pool counts it as awaited.
  from_line,  // The sub-pool had to stand in the host's line, as a blocked submitter does.
};

// What a sub-pool's visits hold on to. They may be queued at the host for long, so the sub-pool
// does not wait for them when it ends: a visit that comes later finds nobody. It is also the
// sub-pool's place in the host's line, as a Waiter that nobody has to be woken for.
// Order
//   [guest-refs]  release (acq_rel, both sides): the last one sees all uses.
class Guest : public Submitter {
 public:
  explicit Guest(PoolCore& core) noexcept : core_(core) {}
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  // The sub-pool, which stays until the caller calls leave(); null if it has ended.
  [[nodiscard]] PoolCore* enter() noexcept;
  // By the sub-pool, when it ends.
  void detach() noexcept;
  // While it stands in line: it lives.
  [[nodiscard]] PoolCore& core() noexcept { return core_; }
  // Relaxed: who adds a reference has one.
  void keep() noexcept { references_.fetch_add(1, detail::relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, detail::acq_rel) == 1) delete this;  // [guest-refs]
  }

  // Guarded by the host's lock: what is accepted when its turn comes, and all guests of the host.
  detail::PoolItem visit;
  Guest* next_guest = nullptr;
  Guest* previous_guest = nullptr;

 private:
  ~Guest() = default;

  detail::SpinLock lock_;
  PoolCore& core_;
  bool is_gone_ = false;
  detail::Atomic<std::uint32_t> references_{1};
};

// A task of the host that runs tasks of its guest. The host settles it, as it does every job, when
// it frees the slot: then the waiters of the guest's last job are told, too, and the guest is left.
// Dropped without having run, it tells the guest not to count on it.
class Visit final : public detail::PoolJob {
 public:
  Visit(const PoolCore& host, Guest& guest, Arrival arrival) noexcept
      : PoolJob(host, Kind::unwatched), guest_(guest), arrival_(arrival) {
    guest.keep();
  }
  // Null if there is no memory.
  [[nodiscard]] static Visit* make(PoolCore& host, Guest& guest, Arrival arrival) noexcept;
  // The guest knows already that it will not take place.
  void call_off() noexcept { is_off_ = true; }
  [[nodiscard]] Settled settle(Outcome outcome) noexcept override;

 private:
  ~Visit() override;
  bool invoke() noexcept override;
  void drop_callable() noexcept override;
  void request_stop() noexcept override {}
  void fail(std::exception_ptr /*exception*/) noexcept override {}

  Guest& guest_;
  const Arrival arrival_;
  bool is_off_ = false;
  PoolCore* visited_ = nullptr;
  PoolJob* finished_ = nullptr;  // The guest's job whose waiters are to be told.
  Outcome outcome_ = Outcome::completed;
};

}  // namespace weft::pool
