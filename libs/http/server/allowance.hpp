// Limits how long a peer may delay a transfer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/net/result.hpp>

namespace weft::http {

// Holds a time budget for a peer. Waits use up the budget, and each byte adds 1/least_rate seconds
// to it. The budget never exceeds `grace`. The owner drops a peer that makes no progress for
// `grace`, or that stays slower than least_rate. A slow handler does not reduce the budget, because
// only waits for the peer use it up.
// Context: one fiber at a time.
class Allowance {
 public:
  // `least_rate` is in bytes per second. If it is 0, any progress restores the whole budget.
  Allowance(std::chrono::nanoseconds grace, std::uint64_t least_rate) noexcept
      : grace_(grace), left_(grace), least_rate_(least_rate) {}

  // Restores the whole budget before the next transfer.
  void renew() noexcept { left_ = grace_; }

  // Adds time to the budget for transferred bytes.
  void earn(std::size_t bytes) noexcept {
    if (bytes == 0 || left_ == grace_) return;
    if (least_rate_ == 0) return renew();
    const std::chrono::duration<double> missing = grace_ - left_;
    const std::chrono::duration<double> earned(static_cast<double>(bytes) /
                                               static_cast<double>(least_rate_));
    if (earned >= missing) return renew();
    left_ += std::chrono::duration_cast<std::chrono::nanoseconds>(earned);
  }

  // Calls `transfer` with the deadline at which the budget is used up. Subtracts the elapsed time,
  // then adds time for the transferred bytes. May park.
  template <class Transfer>
  net::Result<std::size_t> wait(Transfer transfer) {
    const Deadline deadline = Deadline::after(left_);
    const net::Result<std::size_t> result = transfer(deadline);
    if (deadline.is_never()) return result;
    const std::chrono::nanoseconds left(deadline.nanoseconds() - Deadline::now_nanoseconds());
    left_ = std::clamp(left, std::chrono::nanoseconds(0), left_);
    earn(result.value);
    return result;
  }

  // Returns true if the transfer may continue after a timeout, because the peer was fast enough.
  [[nodiscard]] bool covers(const net::Result<std::size_t>& result) const noexcept {
    return result.error == weft::Errc::timed_out && result.value > 0 && left_.count() > 0;
  }

 private:
  std::chrono::nanoseconds grace_;
  std::chrono::nanoseconds left_;
  std::uint64_t least_rate_;
};

}  // namespace weft::http
