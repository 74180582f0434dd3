// All runnable fibers of one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <weft/detail/atomic.hpp>

#include "base/cache_line.hpp"
#include "fibers/fiber.hpp"
#include "scheduler/queues/overflow_queue.hpp"
#include "scheduler/queues/ready_list.hpp"
#include "scheduler/queues/run_queue.hpp"

namespace weft::scheduler {

// Four places, checked in this order:
//   next      the fiber woken last: the data it waits for is hot in the cache. It may be displaced,
//             and goes to the end of the queue if another was next just before it.
//   ring      a FIFO of 256, for all kinds of fibers.
//   waiting   fibers that have started or come from outside, and found the ring full: an unbounded
//             FIFO. While it holds any, all fibers that are woken or yield go to its end, so that
//             FIFO order is kept at every number.
//   unstarted new fibers that were in the ring when it was full, or came while others waited, in
//             chains. The newest chain is taken first: a fiber that spawns a tree then walks it
//             nearly depth first, with few of its fibers parked at a time. The oldest are reached
//             gradually.
// An empty ring is filled with waiting fibers or, if there are none, with the newest chain.
// Invariants
//   I1  A fiber that is runnable is in one place of one worker, or in the InjectQueue. Unchecked:
//       no thread sees all places at one moment.
//   I2  Fibers in the ring that have started became ready before all that wait, except stolen ones,
//       which go among the waiting ones by age. Unchecked: no fiber records when it entered the
//       ring.
//   I3  overtakers_ counts fibers in the ring that are newer than waiting ones, which new fibers
//       have driven out of it or another ring has lost. While there are any, every second fiber
//       taken from the ring's side is the oldest waiting one.
//   I4  Thieves come only once is_open().
// The owner's side of a queue that is not shared is plain stores. A monitor that has found the
// owner stuck in a fiber opens such a queue: try_open() makes the ring shared, makes every thread
// execute a barrier, and checks whether the owner is inside one of the functions below.
// Order
//   [next]    put_next stores or exchanges (release) -> the taker exchanges (acquire).
//   [inside]  inside() stores inside_, then loads whether the ring is shared, with nothing but a
//             compiler's fence in between; try_open makes it shared, has the barrier executed, and
//             loads inside_. One sees the other. Its end stores inside_ (release) -> try_open
//             loads it (acquire): the plain stores are visible.
//   [open]    try_open stores open_ (release) -> is_open loads it (acquire).
class LocalQueue {
 public:
  explicit LocalQueue(bool shared) noexcept : ring_(shared), open_(shared) {}

  // --- By the owner ---

  // The fiber runs next; the previous next fiber goes to the end.
  void put_next(fibers::Fiber& fiber) noexcept {
    // Relaxed look: only the owner fills the place.
    if (next_.load(detail::relaxed) == nullptr) {
      next_.store(&fiber, detail::release);                                           // [next]
    } else if (fibers::Fiber* displaced = next_.exchange(&fiber, detail::acq_rel)) {  // [next]
      push_last(*displaced);
    }
  }
  void push_last(fibers::Fiber& fiber) noexcept {
    if (waiting_.size_hint() == 0 && ring_.push(fiber)) [[likely]]
      return;
    push_behind(fiber);
  }
  void push_last(Chain chain) noexcept;
  // Queues fibers that have slept; their time was recorded when their sleep began.
  void push_due(Chain chain) noexcept;
  // Sets the time that fibers record when they become ready.
  void set_time(std::int64_t now) noexcept { time_ = now; }
  // Must be called before push_new(), which then needs no memory. Throws std::bad_alloc.
  void make_room() {
    // Thieves only take, so the ring cannot become full meanwhile.
    if (ring_.size_hint() == RunQueue::kCapacity || waiting_.size_hint() != 0) [[unlikely]]
      unstarted_.make_room();
  }
  // Queues a fiber that has not started.
  void push_new(fibers::Fiber& fiber) noexcept {
    if (waiting_.size_hint() != 0) [[unlikely]]
      return unstarted_.push_newest_fiber(fiber);
    while (!ring_.push(fiber)) [[unlikely]] spill();
  }
  // Returns nullptr if there is none.
  [[nodiscard]] fibers::Fiber* pop() noexcept {
    return inside([this]() noexcept -> fibers::Fiber* {
      if (fibers::Fiber* fiber = take_next()) {
        if (!std::exchange(next_ran_, !next_ran_) || nobody_waits()) return fiber;
        push_last(*fiber);
      }
      next_ran_ = false;
      if (overtakers_ != 0) [[unlikely]] {
        if (fibers::Fiber* fiber = pop_overtaken()) return fiber;
      }
      if (fibers::Fiber* fiber = ring_.pop()) [[likely]]
        return fiber;
      return size_hint() == 0 ? nullptr : refill();
    });
  }
  // Works as RunQueue::take_recent() does.
  template <class MayBe, class IsIt>
  [[nodiscard]] fibers::Fiber* take_recent(MayBe may_be, IsIt is_it) noexcept {
    return inside([&]() noexcept { return ring_.take_recent(may_be, is_it); });
  }
  // Moves the oldest unstarted fibers to the end of the queue: one, plus one for each 512, at most
  // eight.
  void reach_oldest() noexcept;
  // Takes all fibers, so that other workers can run them.
  [[nodiscard]] Chain take_all() noexcept;

  // --- The owner of another queue calls these on an open one, and receives the fibers ---

  // Takes fibers that did not fit into the victim's ring, into an empty ring. Returns their number.
  std::size_t steal_overflow(LocalQueue& victim, bool unstarted_first) noexcept;
  // Takes the victim's oldest chain of new fibers, which becomes the oldest here: so a tree that
  // both workers walk is not started again from the top. Returns an upper bound of their number.
  std::size_t steal_chain(LocalQueue& victim) noexcept;
  // Takes the older half of the victim's ring, at most `most`, and returns their number. They go
  // before all that wait here, as their time is unknown; if none wait, they alternate with the
  // ring's.
  std::size_t steal_ring(LocalQueue& victim, std::size_t most = RunQueue::kCapacity) noexcept;
  // Takes the victim's next fiber, if there is one.
  std::size_t steal_next(LocalQueue& victim) noexcept;
  // Takes up to `most` of the victim's waiting fibers, the oldest first. They go before fibers that
  // have waited here for a shorter time.
  std::size_t steal_oldest(LocalQueue& victim, std::size_t most) noexcept;
  // Takes up to `most` of the victim's waiting fibers. If none wait, it takes a chain of new ones;
  // otherwise some of the ring, which the owner will soon reach unless it is stuck or has nothing
  // else.
  std::size_t relieve(LocalQueue& victim, std::size_t most) noexcept;
  // Returns whether a waiting fiber here has waited longer than all that wait at the other queue:
  // fibers taken from there would overtake it.
  [[nodiscard]] bool waits_longer_than(LocalQueue& other) noexcept {
    return other.waiting_.size_hint() != 0 &&
           waiting_.oldest_since(time_) < other.waiting_.oldest_since(time_);
  }
  [[nodiscard]] bool is_open() const noexcept { return open_.load(detail::acquire); }  // [open]

  // --- By the monitor ---

  // Lets thieves in. Returns false while the owner is inside; then the monitor may try again.
  [[nodiscard]] bool try_open() noexcept;

  // --- Any thread may call these; the results may be stale ---

  [[nodiscard]] std::uint32_t ring_size_hint() const noexcept { return ring_.size_hint(); }
  [[nodiscard]] std::uint32_t ring_head_hint() const noexcept { return ring_.head_hint(); }
  [[nodiscard]] const fibers::Fiber* next_hint() const noexcept {
    return next_.load(detail::relaxed);
  }
  // Counts how often the ring was full.
  [[nodiscard]] std::uint64_t spills() const noexcept { return spills_.load(detail::relaxed); }
  // Does not count the next fiber.
  [[nodiscard]] std::size_t size_hint() const noexcept {
    return ring_.size_hint() + waiting_.size_hint() +
           unstarted_.size_hint() * (RunQueue::kCapacity / 2);
  }
  [[nodiscard]] bool empty_hint() const noexcept {
    return ring_.size_hint() == 0 && next_hint() == nullptr && waiting_.size_hint() == 0 &&
           unstarted_.size_hint() == 0;
  }

 private:
  // The owner takes fibers from the ring only inside this function. A shared ring stays shared, and
  // needs no notes: together with the exchange that takes the next fiber they cost 2 ns each time.
  template <class Take>
  [[gnu::always_inline]] std::invoke_result_t<Take> inside(Take take) noexcept {
    if (!ring_.is_shared()) inside_.store(true, detail::relaxed);  // [inside]
    asm volatile("" : : : "memory");
    const auto taken = take();
    // The note itself is read: a variable would occupy the frame of each parked fiber.
    if (inside_.load(detail::relaxed)) inside_.store(false, detail::release);  // [inside]
    return taken;
  }
  [[nodiscard]] fibers::Fiber* take_next() noexcept {
    fibers::Fiber* fiber = next_.load(detail::relaxed);
    if (fiber == nullptr) return nullptr;
    if (ring_.is_shared()) return next_.exchange(nullptr, detail::acquire);  // [next]
    next_.store(nullptr, detail::relaxed);  // Relaxed: the worker's own fiber.
    return fiber;
  }
  [[nodiscard]] bool nobody_waits() const noexcept {
    return ring_.size_hint() == 0 && waiting_.size_hint() == 0;
  }
  // Appends the fiber to the waiting ones. Not inlined where fibers park: it would enlarge their
  // frames, which occupy most of the cache when many fibers are parked.
  [[gnu::noinline]] void push_behind(fibers::Fiber& fiber) noexcept;
  [[nodiscard]] fibers::Fiber* pop_overtaken() noexcept;
  void stamp(fibers::Fiber& fiber) const noexcept;
  [[nodiscard]] Chain fill_ring(Chain chain) noexcept;
  void take_over(Chain stolen) noexcept;
  void spill() noexcept;
  [[nodiscard]] fibers::Fiber* refill() noexcept;
  void adopt(fibers::Fiber* chain) noexcept;

  RunQueue ring_;
  alignas(base::kCacheLine) detail::Atomic<fibers::Fiber*> next_{nullptr};
  // While others wait, the fiber that was woken last runs at once only once in a row. So a fiber in
  // the ring waits for two runs per fiber before it: that fiber, and the one it woke.
  bool next_ran_ = false;
  std::uint32_t overtakers_ = 0;
  bool overtaken_first_ = false;
  std::int64_t time_ = 0;
  detail::Atomic<bool> inside_{false};
  detail::Atomic<bool> open_;
  ReadyList waiting_;
  OverflowQueue unstarted_;
  detail::Atomic<std::uint64_t> spills_{0};  // Relaxed: written by the owner, statistics.
};

}  // namespace weft::scheduler
