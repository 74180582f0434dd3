// The desks of all workers of one scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <weft/detail/atomic.hpp>

#include "scheduler/desk.hpp"

namespace weft::scheduler {

// An append-only list of desks, including the desks of spare workers. Any thread may call the
// functions, except where a comment names the caller. Relaxed loads suffice: publish() has one
// caller at a time, and the stack that home_of() reads does not change once the fiber has started.
// Order
//   [spares]  publish() stores count_ (release) -> all() loads it (acquire): all() returns complete
//             desks. A caller that wakes a sleeping worker sees a complete desk, because it reads
//             the worker's bit in IdleSet with acquire order.
class Desks {
 public:
  // There are at most `most` desks. `common` has the settings that all desks share; setting_of()
  // adds the settings of one desk. The first `permanent` desks belong to workers that always exist.
  Desks(unsigned most, unsigned permanent, const Desk::Setting& common)
      : desks_(std::make_unique<Desk*[]>(most)), permanent_(permanent), common_(common) {}
  Desks(const Desks&) = delete;
  Desks& operator=(const Desks&) = delete;

  // Returns all desks that exist now; new desks are added after them.
  [[nodiscard]] std::span<Desk* const> all() const noexcept { return {desks_.get(), size()}; }
  [[nodiscard]] std::size_t size() const noexcept {
    return count_.load(detail::acquire);  // [spares]
  }
  [[nodiscard]] Desk* const* begin() const noexcept { return desks_.get(); }
  [[nodiscard]] Desk* const* end() const noexcept { return desks_.get() + size(); }
  [[nodiscard]] Desk& operator[](unsigned index) const noexcept { return *desks_[index]; }

  // Returns the scheduler's sequence number within the process.
  [[nodiscard]] unsigned scheduler() const noexcept { return common_.scheduler; }
  // Returns the parameters for the desk of a worker. A spare worker's queue is open from the start,
  // so that other workers may steal from it.
  [[nodiscard]] Desk::Setting setting_of(unsigned index, std::int64_t now) const noexcept {
    Desk::Setting setting = common_;
    setting.index = index;
    setting.is_resting = index >= permanent_;
    setting.has_open_queue = common_.has_open_queue || setting.is_resting;
    setting.now = now;
    return setting;
  }

  // The scheduler calls add() and publish(), from one thread at a time. It calls add() before the
  // worker's thread starts, because wakers may use the desk once the worker is asleep. It publishes
  // the initial desks before any thread starts, and a later worker's desk once the worker's thread
  // has started.
  void add(Desk& desk) noexcept { desks_[desk.index] = &desk; }
  void publish() noexcept {
    count_.store(count_.load(detail::relaxed) + 1, detail::release);  // [spares]
  }

  // Returns the desk of the worker to which a started fiber is pinned.
  [[nodiscard]] Desk& home_of(const fibers::Fiber& fiber) const noexcept {
    return (*this)[fiber.stack.load(detail::relaxed)->home];
  }
  // Queues a pinned fiber at the desk of its worker. The worker of the desk `here` calls this
  // function. It is not inlined, because otherwise each wake would save registers for this call.
  [[gnu::noinline]] void send_home(fibers::Fiber& fiber, Desk& here) const noexcept {
    Desk& home = home_of(fiber);
    if (&home == &here) return here.queue_pinned(fiber);
    home.send_pinned(fiber);
  }

 private:
  // The array has an entry for each possible desk, and is filled from the front.
  const std::unique_ptr<Desk*[]> desks_;
  detail::Atomic<std::size_t> count_{0};
  const unsigned permanent_;
  const Desk::Setting common_;
};

}  // namespace weft::scheduler
