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

// Has four places for fibers, which the worker checks in this order:
//
//   Next: the fiber that was woken last. It runs first, because the data that it waited for is hot
//   in the cache. A later wake moves it to the queue's end. While other fibers wait, the worker
//   never runs two fibers in a row from here: the second moves to the end.
//
//   Ring: a FIFO with room for 256 fibers of all kinds.
//
//   Waiting: an unbounded FIFO of fibers that found no room in the ring. They have started, or come
//   from other queues. While it is not empty, fibers that are woken or yield go to its end, so that
//   the order stays FIFO with any number of ready fibers.
//
//   Unstarted: chains of new fibers that a full ring spilled, or that were spawned while fibers
//   waited. The worker takes the newest chain first. It thus walks a tree of fibers nearly depth
//   first, so that few are parked at a time. reach_oldest() gradually serves the oldest chains.
//
// An empty ring is filled from Waiting or, if that is empty, with the newest chain of Unstarted.
// Invariants
//   I1  A runnable fiber is in exactly one of these places of one worker, or in the InjectQueue.
//       Not asserted, because no thread sees all places at the same moment.
//   I2  A started fiber in the ring became ready before every waiting fiber, unless the waiting
//       fiber was spilled or stolen. A stolen fiber is inserted into the waiting list by its age.
//       Not asserted, because no fiber records when it entered the ring, so no assertion can
//       compare times.
//   I3  overtakers_ counts the fibers in the ring that became ready later than a waiting fiber that
//       was spilled or stolen. While overtakers_ is not 0, calls to pop() that do not take next_
//       alternate between the oldest waiting fiber and the ring.
//   I4  Thieves do not access the queue until is_open() is true.
// The owner of a queue that is not shared uses plain stores. A monitor that has found the owner
// stuck in a fiber opens such a queue. To open it, try_open() makes the ring shared, makes every
// thread execute a barrier, and checks that the owner is not in inside().
// Order
//   [next]    put_next() stores or exchanges next_ (release) -> the taker exchanges it (acquire):
//             the taker sees the fiber's fields.
//   [inside]  inside() stores inside_, then loads the ring's shared flag, with only a compiler
//             fence between the two. try_open() sets that flag, executes a barrier on all threads,
//             and loads inside_. At least one thread sees the other's store. The end of inside()
//             stores inside_ (release) -> try_open() loads it (acquire): try_open() sees the
//             owner's plain stores.
//   [open]    try_open() stores open_ (release) -> is_open() loads it (acquire): a thief sees the
//             owner's plain stores, too.
class LocalQueue {
 public:
  explicit LocalQueue(bool shared) noexcept : ring_(shared), open_(shared) {}

  // --- By the owner ---

  // The fiber runs next; the fiber that was previously next moves to the end of the queue.
  void put_next(fibers::Fiber& fiber) noexcept {
    // Relaxed load: only the owner stores a fiber in next_.
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
  // Queues fibers whose sleep is over. Each fiber has already recorded the end of its sleep as the
  // time at which it becomes ready.
  void push_due(Chain chain) noexcept;
  // Sets the time that this queue records in fibers as the time at which they became ready.
  void set_time(std::int64_t now) noexcept { time_ = now; }
  // Must be called before push_new(), which then needs no memory. Throws std::bad_alloc.
  void make_room() {
    // Thieves only take fibers, so the ring cannot become full before push_new().
    if (ring_.size_hint() == RunQueue::kCapacity || waiting_.size_hint() != 0) [[unlikely]]
      unstarted_.make_room();
  }
  // Queues a fiber that has not started.
  void push_new(fibers::Fiber& fiber) noexcept {
    if (waiting_.size_hint() != 0) [[unlikely]]
      return unstarted_.push_newest_fiber(fiber);
    while (!ring_.push(fiber)) [[unlikely]] spill();
  }
  // Returns the next fiber to run; nullptr if the queue is empty.
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
  // Does the same as RunQueue::take_recent().
  template <class MayBe, class IsIt>
  [[nodiscard]] fibers::Fiber* take_recent(MayBe may_be, IsIt is_it) noexcept {
    return inside([&]() noexcept { return ring_.take_recent(may_be, is_it); });
  }
  // Moves the oldest unstarted fibers to the end of the queue: one fiber, plus one for each 512
  // unstarted fibers, at most eight.
  void reach_oldest() noexcept;
  // Takes all fibers, so that other workers can run them.
  [[nodiscard]] Chain take_all() noexcept;

  // --- The owner of this queue calls these; `victim` is another worker's open queue ---

  // Takes fibers that did not fit into the victim's ring. Returns the number of fibers that it
  // took, or an upper bound on this number if they are new fibers. This queue's ring must be empty.
  std::size_t steal_overflow(LocalQueue& victim, bool unstarted_first) noexcept;
  // Makes the victim's oldest chain of new fibers this queue's oldest chain. If this queue has no
  // room for a chain, appends each fiber with push_last(). The thief runs its oldest chain last, so
  // that it walks a tree of fibers depth first. Returns an upper bound on the number of fibers.
  std::size_t steal_chain(LocalQueue& victim) noexcept;
  // Takes the older half of the victim's ring, but at most `most` fibers; returns their number. A
  // ring does not record when a fiber became ready, so each stolen fiber has the time recorded at
  // an earlier wait. Therefore they usually precede this queue's waiting fibers, which are sorted
  // by time. If this queue has no waiting fibers, the stolen fibers and the fibers of its ring run
  // alternately.
  std::size_t steal_ring(LocalQueue& victim, std::size_t most = RunQueue::kCapacity) noexcept;
  // Takes the victim's next fiber, if there is one, and returns the number of taken fibers.
  std::size_t steal_next(LocalQueue& victim) noexcept;
  // Takes up to `most` of the victim's waiting fibers, the oldest first. Inserts them into this
  // queue's waiting list, before the fibers that have waited for a shorter time.
  std::size_t steal_oldest(LocalQueue& victim, std::size_t most) noexcept;
  // Takes up to `most` of the victim's waiting fibers. If there are none, takes a chain of new
  // fibers; if there is no chain either, takes fibers from the ring. The ring comes last, because
  // its owner will soon run its fibers, unless a fiber blocks the owner.
  std::size_t relieve(LocalQueue& victim, std::size_t most) noexcept;
  // Returns whether a fiber here has waited longer than all waiting fibers of the other queue.
  // Fibers taken from the other queue would overtake that fiber.
  [[nodiscard]] bool waits_longer_than(LocalQueue& other) noexcept {
    return other.waiting_.size_hint() != 0 &&
           waiting_.oldest_since(time_) < other.waiting_.oldest_since(time_);
  }
  [[nodiscard]] bool is_open() const noexcept { return open_.load(detail::acquire); }  // [open]

  // --- By the monitor ---

  // Opens the queue to thieves. Returns false if the owner is in a call of inside(), or the system
  // cannot execute a barrier on all threads. The monitor may then retry.
  [[nodiscard]] bool try_open() noexcept;

  // --- Any thread may call these; the results may be stale ---

  [[nodiscard]] std::uint32_t ring_size_hint() const noexcept { return ring_.size_hint(); }
  [[nodiscard]] std::uint32_t ring_head_hint() const noexcept { return ring_.head_hint(); }
  [[nodiscard]] const fibers::Fiber* next_hint() const noexcept {
    return next_.load(detail::relaxed);
  }
  // Returns how often push_new() found the ring full.
  [[nodiscard]] std::uint64_t spills() const noexcept { return spills_.load(detail::relaxed); }
  // Returns the number of queued fibers except the next fiber; a chain counts as 128 fibers.
  [[nodiscard]] std::size_t size_hint() const noexcept {
    return ring_.size_hint() + waiting_.size_hint() +
           unstarted_.size_hint() * (RunQueue::kCapacity / 2);
  }
  [[nodiscard]] bool empty_hint() const noexcept {
    return ring_.size_hint() == 0 && next_hint() == nullptr && waiting_.size_hint() == 0 &&
           unstarted_.size_hint() == 0;
  }

 private:
  // The owner takes fibers from the ring only inside this function. A ring that is shared stays
  // shared, so inside_ need not be set for it. Setting inside_ and exchanging next_ in every call
  // would cost 2 ns per call.
  template <class Take>
  [[gnu::always_inline]] std::invoke_result_t<Take> inside(Take take) noexcept {
    if (!ring_.is_shared()) inside_.store(true, detail::relaxed);  // [inside]
    asm volatile("" : : : "memory");
    const auto taken = take();
    // Reads inside_ again instead of keeping a local variable, which would enlarge the stack frame
    // of each parked fiber.
    if (inside_.load(detail::relaxed)) inside_.store(false, detail::release);  // [inside]
    return taken;
  }
  [[nodiscard]] fibers::Fiber* take_next() noexcept {
    fibers::Fiber* fiber = next_.load(detail::relaxed);
    if (fiber == nullptr) return nullptr;
    if (ring_.is_shared()) return next_.exchange(nullptr, detail::acquire);  // [next]
    next_.store(nullptr, detail::relaxed);  // Relaxed: in this case, only the owner writes next_.
    return fiber;
  }
  [[nodiscard]] bool nobody_waits() const noexcept {
    return ring_.size_hint() == 0 && waiting_.size_hint() == 0;
  }
  // Appends the fiber to the waiting fibers. This function is not inlined, because its code would
  // enlarge the frames of parked fibers. These frames occupy most of the cache when many fibers are
  // parked.
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
  // While other fibers wait, the worker never takes two successive fibers from next_. Each fiber in
  // the ring therefore delays the fibers behind it by at most two runs: its own run, and the run of
  // a fiber that it woke.
  bool next_ran_ = false;
  std::uint32_t overtakers_ = 0;
  bool overtaken_first_ = false;
  std::int64_t time_ = 0;
  detail::Atomic<bool> inside_{false};
  detail::Atomic<bool> open_;
  ReadyList waiting_;
  OverflowQueue unstarted_;
  detail::Atomic<std::uint64_t> spills_{0};  // Relaxed: only the owner writes this count.
};

}  // namespace weft::scheduler
