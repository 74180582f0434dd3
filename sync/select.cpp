// Waits for the first of several events.
//
// A select first attempts its cases one by one, in random order. It chooses the first case that is
// ready, and each ready case is equally likely to come first. If none is ready, the select locks
// all sources in the order of their addresses, so that selects that share sources cannot deadlock.
// It checks again, and enters every list before it releases the locks. So there was a moment at
// which no case was ready and the select waited for all of them. No event is missed, and a default
// is chosen only at such a moment.
//
// All waiters of a select share one claim. The thread that wins the claim ends the wait. Threads
// that reach another waiter of the select find the claim lost, and pass over that waiter.
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>
#include <weft/detail/select_case.hpp>

#include "base/random.hpp"

namespace weft::detail {

namespace {

// An array with one element per case, which is on the stack for small selects.
template <class T>
class PerCase {
 public:
  explicit PerCase(std::size_t count) : count_(count) {
    if (count > kFew) many_.resize(count);
  }
  [[nodiscard]] T* begin() noexcept { return count_ > kFew ? many_.data() : few_.data(); }
  [[nodiscard]] T* end() noexcept { return begin() + count_; }
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return begin()[index]; }

 private:
  static constexpr std::size_t kFew = 8;
  const std::size_t count_;
  std::array<T, kFew> few_;
  std::vector<T> many_;
};

// Returns a number below `bound`, uniformly distributed.
std::size_t random_below(std::size_t bound) noexcept {
  return static_cast<std::size_t>(((base::thread_random() >> 32) * bound) >> 32);
}

}  // namespace

// Holds the cases of a select in random order.
class Order {
 public:
  explicit Order(std::span<SelectCase* const> cases) : cases_(cases), order_(cases.size()) {
    for (std::size_t i = 0; i < cases.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
  }
  [[nodiscard]] std::span<SelectCase* const> cases() const noexcept { return cases_; }
  [[nodiscard]] std::uint32_t* begin() noexcept { return order_.begin(); }
  [[nodiscard]] std::uint32_t* end() noexcept { return order_.end(); }

  // Shuffles on the way, so a select whose first case is ready draws one number.
  std::size_t attempt_all() noexcept {
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const std::size_t left = cases_.size() - i;
      if (left > 1) std::swap(order_[i], order_[i + random_below(left)]);
      const std::size_t index = order_[i];
      if (cases_[index]->lock() != nullptr && cases_[index]->attempt()) return index;
    }
    return kNoCase;
  }

 private:
  const std::span<SelectCase* const> cases_;
  PerCase<std::uint32_t> order_;
};

// A select in which no case was ready at the first attempt.
class Selection {
 public:
  explicit Selection(Order& order)
      : order_(order), cases_(order.cases()), locks_(order.cases().size()) {}

  // Not inlined, to keep a select with a ready case fast.
  [[gnu::noinline]] std::size_t run(const Until& until) {
    collect_locks();
    // A select that may not wait keeps its slots unless a case is now ready: regaining takes long.
    if (until.is_over() && !ready_now()) return kNoCase;
    const Preparation preparation(cases_);
    const SlotsReleased released(cases_);
    for (;;) {
      lock_all();
      if (!any_ready()) {
        if (until.is_over()) {
          unlock_all();
          return kNoCase;
        }
        const std::size_t completed = wait(until);
        if (completed != kNoCase) return completed;
      } else {
        unlock_all();
      }
      const std::size_t chosen = order_.attempt_all();
      if (chosen != kNoCase) return chosen;
    }
  }

 private:
  // Runs the steps of the cases before and after all waits of a select.
  class Preparation {
   public:
    explicit Preparation(std::span<SelectCase* const> cases) noexcept : cases_(cases) {
      for (SelectCase* one : cases_) one->prepare();
    }
    ~Preparation() {
      for (SelectCase* one : cases_) one->dismiss();
    }
    Preparation(const Preparation&) = delete;
    Preparation& operator=(const Preparation&) = delete;

   private:
    const std::span<SelectCase* const> cases_;
  };

  // While the select waits, a task's slots are given back: the first case of its pool does so.
  class SlotsReleased {
   public:
    explicit SlotsReleased(std::span<SelectCase* const> cases) noexcept {
      const auto found = std::find_if(cases.begin(), cases.end(),
                                      [](SelectCase* one) { return one->release_slots(); });
      if (found != cases.end()) case_ = *found;
    }
    ~SlotsReleased() {
      if (case_ != nullptr) case_->reacquire_slots();
    }
    SlotsReleased(const SlotsReleased&) = delete;
    SlotsReleased& operator=(const SlotsReleased&) = delete;

   private:
    SelectCase* case_ = nullptr;
  };

  void collect_locks() noexcept {
    SpinLock** last = locks_.begin();
    for (const SelectCase* one : cases_) {
      if (one->lock() != nullptr) *last++ = one->lock();
    }
    std::sort(locks_.begin(), last);
    locks_end_ = std::unique(locks_.begin(), last);
  }
  // Not analyzed: the number of locks is known only at run time.
  void lock_all() noexcept WEFT_NOT_ANALYZED {
    gate_.lock();
    for (SpinLock** lock = locks_.begin(); lock != locks_end_; ++lock) (*lock)->lock();
  }
  void unlock_all() noexcept WEFT_NOT_ANALYZED {
    for (SpinLock** lock = locks_.begin(); lock != locks_end_; ++lock) (*lock)->unlock();
    // The last access. A caller that has been woken waits for the gate until this point.
    gate_.unlock();
  }

  // The caller holds all locks.
  bool any_ready() noexcept {
    return std::any_of(cases_.begin(), cases_.end(),
                       [](SelectCase* one) { return one->lock() != nullptr && one->is_ready(); });
  }
  bool ready_now() noexcept {
    lock_all();
    const bool ready = any_ready();
    unlock_all();
    return ready;
  }
  // Releases the locks and waits. A result of kNoCase means that the caller must attempt again.
  std::size_t wait(const Until& until) noexcept {
    Deadline due = Deadline::never();
    WaitReason reason = WaitReason::select;
    for (SelectCase* one : cases_) {
      if (one->lock() == nullptr) continue;
      due = std::min(due, one->due());
      if (one->asks_kernel()) reason = WaitReason::select_socket;
    }
    const Until limit = until.but_before(due);
    BoundedPark bounded(limit);
    const Waker waker = current();
    // Random order: if two cases wait in one list, the first in line is served.
    for (const std::uint32_t index : order_) {
      SelectCase& one = *cases_[index];
      if (one.lock() == nullptr) continue;
      one.waiter().waker = waker;
      one.waiter().claim = &bounded.claim();
      one.waiter().claimed = one.waiter().granted = false;
      one.list().push_back(one.waiter());
    }
    (void)bounded.park(
        {[](void* self) noexcept { static_cast<Selection*>(self)->unlock_all(); }, this}, reason);
    gate_.lock();
    gate_.unlock();
    return withdraw();
  }
  // Removes all waiters, and returns the completed case, if there is one.
  std::size_t withdraw() noexcept {
    std::size_t completed = kNoCase;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      SelectCase& one = *cases_[i];
      if (one.lock() == nullptr) continue;
      {
        const detail::SpinGuard guard(*one.lock());
        one.list().erase_if_linked(one.waiter());
      }
      if (one.waiter().claimed && one.conclude()) completed = i;
    }
    return completed;
  }

  Order& order_;
  const std::span<SelectCase* const> cases_;
  PerCase<SpinLock*> locks_;  // Each lock appears once, in the order of addresses.
  SpinLock** locks_end_ = nullptr;
  SpinLock gate_;  // Held from lock_all() to unlock_all(), perhaps on another thread.
};

std::size_t select_one(std::span<SelectCase* const> cases, const Until& until) {
  give_way_if_due();
  Order order(cases);
  const std::size_t chosen = order.attempt_all();
  if (chosen != kNoCase) return chosen;
  // Most polls end here: with one source, the attempt has shown that nothing is ready.
  if (cases.size() <= 1 && until.is_over()) return kNoCase;
  return Selection(order).run(until);
}

}  // namespace weft::detail
