// Counts the workers that take part in running fibers, and the workers that should.
#pragma once

#include <algorithm>
#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// Counts the workers that are not at rest. The monitor sets the usual number, which may follow the
// number of processors, and the wanted number, which includes spares. The monitor increments the
// count for each resting worker that it activates; a surplus worker that goes to rest decrements
// the count. The permanent workers never leave. Relaxed: counts.
class ActiveWorkers {
 public:
  struct Setting {
    unsigned workers = 1;     // The initial number.
    unsigned most = 0;        // The largest number of usual workers; 0: the number is fixed.
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
  // Returns the number of workers that take part while none is stuck.
  [[nodiscard]] unsigned usual() const noexcept { return usual_.load(detail::relaxed); }
  [[nodiscard]] unsigned at_work() const noexcept { return at_work_.load(detail::relaxed); }
  // Returns how many workers beyond the usual number take part: spares, and surplus workers that
  // have not left yet.
  [[nodiscard]] unsigned surplus() const noexcept {
    const unsigned usual = this->usual();
    return std::max(at_work(), usual) - usual;
  }

  // The monitor calls these. want() sets the wanted number, and returns the previous one.
  void note_processors(unsigned processors) noexcept {
    processors_.store(processors, detail::relaxed);
    usual_.store(std::clamp(processors, permanent_, most_usual_), detail::relaxed);
  }
  unsigned want(unsigned wanted) noexcept { return wanted_.exchange(wanted, detail::relaxed); }
  // Counts a worker whose rest has ended; returns how many workers now take part. The monitor, or a
  // worker that ends its own rest, calls this function.
  unsigned add_one() noexcept { return at_work_.fetch_add(1, detail::relaxed) + 1; }

  // A worker that is not permanent calls these. The first function returns whether some worker
  // should go to rest, the second whether the caller must.
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
