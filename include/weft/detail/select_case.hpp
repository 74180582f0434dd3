// The alternatives that a select chooses from.
#pragma once

#include <cstddef>
#include <span>
#include <weft/detail/waiter.hpp>

namespace weft::detail {

// One alternative of a select. The case belongs to a source (a channel, a join handle, ...) whose
// state and list of waiters have one lock. Only one select at a time uses a case. A case without a
// lock is never ready, so a select skips the case of a null channel.
class SelectCase {
 public:
  SelectCase(const SelectCase&) = delete;
  SelectCase& operator=(const SelectCase&) = delete;
  virtual ~SelectCase() = default;

  // Called by the select once this case has been chosen, with no lock held.
  virtual void handle() = 0;

  // Only the select that uses the case calls the other functions.

  // Called once before the first wait of a select, and once after its last wait, without the lock.
  virtual void prepare() noexcept {}
  virtual void dismiss() noexcept {}
  // Completes the case if no wait is needed. Takes and releases the lock.
  [[nodiscard]] virtual bool attempt() noexcept = 0;
  // Returns whether attempt() would succeed; the caller holds the lock.
  [[nodiscard]] virtual bool is_ready() noexcept = 0;
  // Returns when to attempt again if no wake occurs; the caller holds the lock.
  [[nodiscard]] virtual Deadline due() noexcept { return Deadline::never(); }
  // Called after a notifier has ended the wait through waiter(). Returns false if the case is not
  // complete and needs another attempt.
  [[nodiscard]] virtual bool conclude() noexcept = 0;
  // Returns whether the kernel can make the case ready, and not only callers in this process.
  [[nodiscard]] virtual bool asks_kernel() const noexcept { return false; }
  // Releases the pool slots that the caller holds, so that other tasks can use them during the
  // wait. Returns true if it released any; the select then calls reacquire_slots() after the wait.
  [[nodiscard]] virtual bool release_slots() noexcept { return false; }
  virtual void reacquire_slots() noexcept {}

  // Returns the lock of the source; null if the case is never ready.
  [[nodiscard]] SpinLock* lock() const noexcept WEFT_RETURNS_LOCK(*lock_) { return lock_; }
  [[nodiscard]] WaitList& list() const noexcept { return *list_; }
  [[nodiscard]] Waiter& waiter() noexcept { return waiter_; }

 protected:
  // `slot` is the place of a transferred value; see Waiter.
  SelectCase(SpinLock* lock, WaitList* list, void* slot = nullptr) noexcept
      : lock_(lock), list_(list) {
    waiter_.slot = slot;
  }

 private:
  SpinLock* const lock_;
  WaitList* const list_;
  Waiter waiter_;
};

// The default for a handler that the user did not pass.
struct Nothing {
  void operator()() const noexcept {}
};

enum : std::size_t { kNoCase = SIZE_MAX };

// Waits until one of the cases is complete, and returns its index. It chooses uniformly at random
// among cases that are ready at the same time. Returns kNoCase if `until` ended the wait; with
// Deadline::past(), this means that no case was ready at some moment. The caller must call
// handle().
[[nodiscard]] std::size_t select_one(std::span<SelectCase* const> cases, const Until& until);

}  // namespace weft::detail
