// Manages the threads that make blocking calls for parked fibers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/detail/blocking.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "base/parker.hpp"
#include "scheduler/helpers.hpp"
#include "scheduler/tuning.hpp"

namespace weft::runtime {

// Helper threads, started on demand, reused last in first out, and ended when they have been idle
// for a while. Calls are made in FIFO order. The lock is a thread mutex, because threads that hold
// it may be preempted by many others. It is held for a few instructions, never across the start or
// the end of a thread.
// Invariants, under mutex_
//   I1  owed_ counts the calls that are expected or queued; free_ counts the helpers that are idle
//       or about to check the queue: a helper leaves only while owed_ < free_.
//   I2  While a call is owed there is a helper. It need not be free: it checks the queue when it is
//       done.
//   I3  A caller that takes a helper off the idle stack must unpark it once, and the helper waits
//       for that; but a helper whose timeout has passed takes itself off.
//   I4  The next helper that leaves, or the destructor, joins the helper that left before.
//   I5  A thread that forks holds all locks of all pools meanwhile; in the child they are unlocked,
//       and no pool has helpers or calls, because they belonged to the parent. Not asserted,
//       because a mutex does not reveal its holder.
class BlockingPool final : public scheduler::Helpers {
 public:
  static constexpr std::chrono::nanoseconds kIdleTime{scheduler::tuning::kHelperIdleTime};

  // Starts up to `most` helpers, on demand; `most` must be at least 1. The helpers' names contain
  // `name`.
  explicit BlockingPool(std::size_t most, std::chrono::nanoseconds idle_time = kIdleTime,
                        std::string name = "block");
  // Ends and joins all helpers. No call may be owed or in progress any more.
  ~BlockingPool() override;
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  [[nodiscard]] std::error_code expect() noexcept override;
  void submit(detail::BlockingCall& call) noexcept override;
  // Withdraws a call that has been handed in and still exists, so that it is never made. Returns
  // false if a helper has taken the call. Any thread may call it.
  [[nodiscard]] bool withdraw(detail::BlockingCall& call) noexcept;

  // Returns whether the calling thread is one of its helpers.
  [[nodiscard]] bool runs_on_this_thread() const noexcept;
  [[nodiscard]] std::size_t size_hint() noexcept override;
  // The number of sleeping helpers; it may be stale.
  [[nodiscard]] std::size_t idle_hint() noexcept;

 private:
  struct Helper {
    std::thread thread;
    base::Parker parker;
    Helper* next_idle = nullptr;
    bool idle = false;  // True while it is on the idle stack.
  };

  friend class BlockingPools;

  // Runs in the child of a fork, with both locks.
  void forget_all() noexcept WEFT_REQUIRES(starting_mutex_, mutex_);
  // Returns the reason if the helper could not be started.
  [[nodiscard]] std::error_code start_helper() noexcept WEFT_REQUIRES(starting_mutex_);
  void run(Helper& self) noexcept;
  [[nodiscard]] detail::BlockingCall* next_call(Helper& self) noexcept;
  void unlink(detail::BlockingCall& call) noexcept WEFT_REQUIRES(mutex_);
  void leave(Helper& self) noexcept WEFT_RELEASES(mutex_);
  void remove_idle(Helper& helper) noexcept WEFT_REQUIRES(mutex_);

  const std::size_t most_;
  const std::chrono::nanoseconds idle_time_;
  const std::string name_;

  // One thread is started at a time, so all helpers in helpers_ are running when a start fails.
  detail::ThreadMutex starting_mutex_;
  std::uint64_t started_ WEFT_GUARDED_BY(starting_mutex_) = 0;
  detail::ThreadMutex mutex_;
  bool stopping_ WEFT_GUARDED_BY(mutex_) = false;
  std::size_t owed_ WEFT_GUARDED_BY(mutex_) = 0;
  std::size_t free_ WEFT_GUARDED_BY(mutex_) = 0;
  detail::BlockingCall* first_ WEFT_GUARDED_BY(mutex_) = nullptr;
  detail::BlockingCall* last_ WEFT_GUARDED_BY(mutex_) = nullptr;
  Helper* idle_ WEFT_GUARDED_BY(mutex_) = nullptr;  // The helper that became idle last.
  std::vector<std::unique_ptr<Helper>> helpers_ WEFT_GUARDED_BY(mutex_);
  // The helper that left last, not yet joined.
  std::unique_ptr<Helper> gone_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::runtime
