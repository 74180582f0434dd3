// Counts the active workers, and stores how many workers should be active.
#pragma once

#include <algorithm>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// Counts the active workers; the others are inactive, because they are not needed. The monitor sets
// the usual number of active workers, which may follow the number of processors, and the wanted
// number, which includes spares. The monitor increments the count for each worker that it
// activates; a surplus worker that becomes inactive decrements the count. The permanent workers are
// always active. Relaxed: the counts publish no other data.
class ActiveWorkers {
 public:
  struct Setting {
    unsigned workers = 1;     // The initial number.
    unsigned most = 0;        // The maximum of usual(); 0 means that usual() is always `workers`.
    unsigned processors = 1;  // The number of usable processors.
  };
  explicit ActiveWorkers(const Setting& setting) noexcept
      : permanent_(setting.most == 0 ? setting.workers : 1),
        most_usual_(std::max(setting.most, setting.workers)),
        processors_(setting.processors),
        at_work_(setting.workers),
        usual_(setting.workers),
        wanted_(setting.workers) {}

  [[nodiscard]] unsigned most_usual() const noexcept { return most_usual_; }
  [[nodiscard]] unsigned processors() const noexcept { return processors_.load(detail::relaxed); }
  [[nodiscard]] bool is_permanent(unsigned worker) const noexcept { return worker < permanent_; }
  [[nodiscard]] unsigned permanent() const noexcept { return permanent_; }
  // Returns how many workers should be active while none of them is stuck.
  [[nodiscard]] unsigned usual() const noexcept { return usual_.load(detail::relaxed); }
  [[nodiscard]] unsigned at_work() const noexcept { return at_work_.load(detail::relaxed); }
  // Returns how many more workers than usual() are active: spares, and workers that will soon
  // become inactive because the usual number has decreased.
  [[nodiscard]] unsigned surplus() const noexcept {
    const unsigned usual = this->usual();
    return std::max(at_work(), usual) - usual;
  }

  // The monitor calls these functions. want() sets the wanted number, and returns the previous one.
  void note_processors(unsigned processors) noexcept {
    processors_.store(processors, detail::relaxed);
    usual_.store(std::clamp(processors, permanent_, most_usual_), detail::relaxed);
  }
  unsigned want(unsigned wanted) noexcept { return wanted_.exchange(wanted, detail::relaxed); }
  // Counts a worker that has become active; returns how many workers are now active. The monitor,
  // or a worker that becomes active by itself, calls this function.
  unsigned add_one() noexcept { return at_work_.fetch_add(1, detail::relaxed) + 1; }

  // A worker that is not permanent calls these functions. The first returns true if more workers
  // are active than wanted. If the second returns true, the caller is no longer counted as active,
  // and must become inactive.
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
  const unsigned permanent_;
  const unsigned most_usual_;
  detail::Atomic<unsigned> processors_;
  detail::Atomic<unsigned> at_work_;
  detail::Atomic<unsigned> usual_;
  detail::Atomic<unsigned> wanted_;
};

}  // namespace weft::scheduler
