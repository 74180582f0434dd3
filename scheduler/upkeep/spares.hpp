// The number of spare workers that should exist.
#pragma once

#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// The monitor sets how many spares it needs, and counts up the ones that it calls; spares leave,
// and count down, once there are too many. Relaxed: counts.
class Spares {
 public:
  [[nodiscard]] unsigned at_work() const noexcept { return at_work_.load(detail::relaxed); }

  // The monitor calls these.
  void want(unsigned wanted) noexcept { wanted_.store(wanted, detail::relaxed); }
  // Returns how many are at work now.
  unsigned add_one() noexcept { return at_work_.fetch_add(1, detail::relaxed) + 1; }

  // A spare calls these: whether one should leave; whether this one does.
  [[nodiscard]] bool wants_one_to_leave() const noexcept {
    return at_work() > wanted_.load(detail::relaxed);
  }
  [[nodiscard]] bool lets_one_leave() noexcept {
    unsigned at_work = this->at_work();
    while (at_work > wanted_.load(detail::relaxed)) {
      if (at_work_.compare_exchange_weak(at_work, at_work - 1, detail::relaxed, detail::relaxed))
        return true;
    }
    return false;
  }

 private:
  detail::Atomic<unsigned> at_work_{0};
  detail::Atomic<unsigned> wanted_{0};
};

}  // namespace weft::scheduler
