// Declares the alternatives from which a select chooses.
#pragma once

#include <cstddef>
#include <span>
#include <weft/detail/waiter.hpp>

namespace weft::detail {

// Represents one alternative of a select. The case belongs to a source (a channel, a join handle,
// ...) whose state and list of waiters share one lock. Only one select at a time uses a case. A
// case without a lock, such as that of a null channel, is never ready, and a select skips it.
class SelectCase {
 public:
  SelectCase(const SelectCase&) = delete;
  SelectCase& operator=(const SelectCase&) = delete;
  virtual ~SelectCase() = default;

  // The select calls handle() after it has chosen this case. It holds no lock during the call.
  virtual void handle() = 0;

  // Only the select that uses the case calls the following functions.

  // The select calls prepare() before its first wait, and dismiss() after its last wait. It holds
  // no lock during these calls.
  virtual void prepare() noexcept {}
  virtual void dismiss() noexcept {}
  // Completes the case if no wait is needed. The caller does not hold the lock.
  [[nodiscard]] virtual bool attempt() noexcept = 0;
  // Returns whether attempt() would succeed; the caller holds the lock.
  [[nodiscard]] virtual bool is_ready() noexcept = 0;
  // Returns when the select must try again if nothing wakes it earlier; the caller holds the lock.
  [[nodiscard]] virtual Deadline due() noexcept { return Deadline::never(); }
  // Called after a notifier has ended the select's wait through waiter(). Returns false if the case
  // is not complete and needs another attempt.
  [[nodiscard]] virtual bool conclude() noexcept = 0;
  // Returns whether the kernel, and not only a caller in this process, can make the case ready.
  [[nodiscard]] virtual bool asks_kernel() const noexcept { return false; }
  // Releases the pool slots that the caller holds, so that other tasks can use them during the
  // wait. If it returns true, the select calls reacquire_slots() after the wait.
  [[nodiscard]] virtual bool release_slots() noexcept { return false; }
  virtual void reacquire_slots() noexcept {}

  // Returns the lock of the source. If it is null, the case is never ready.
  [[nodiscard]] SpinLock* lock() const noexcept WEFT_RETURNS_LOCK(*lock_) { return lock_; }
  [[nodiscard]] WaitList& list() const noexcept { return *list_; }
  [[nodiscard]] Waiter& waiter() noexcept { return waiter_; }

 protected:
  // `slot` is the address to which a value is transferred; see Waiter.
  SelectCase(SpinLock* lock, WaitList* list, void* slot = nullptr) noexcept
      : lock_(lock), list_(list) {
    waiter_.slot = slot;
  }

 private:
  SpinLock* const lock_;
  WaitList* const list_;
  Waiter waiter_;
};

// The default handler of a case, which does nothing.
struct Nothing {
  void operator()() const noexcept {}
};

enum : std::size_t { kNoCase = SIZE_MAX };

// Waits until one of the cases is complete, and returns its index. If several cases are ready, it
// chooses one of them uniformly at random. Returns kNoCase if `until` ended the wait. With
// Deadline::past(), kNoCase means that at one moment during the call no case was ready. The caller
// must call handle() on the chosen case.
[[nodiscard]] std::size_t select_one(std::span<SelectCase* const> cases, const Until& until);

}  // namespace weft::detail
