// One worker's io_uring, for requests of fibers that keep their thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/atomic.hpp>
#include <weft/detail/one_shot.hpp>
#include <weft/detail/waist.hpp>

#include "io/poller.hpp"

struct io_uring_cqe;
struct io_uring_sqe;

namespace weft::io {

// Made by the first request on its thread, which alone uses it, and destroyed when the thread ends.
// The kernel finishes requests only in calls of that thread (IORING_SETUP_DEFER_TASKRUN), unless it
// has moved a receive to a thread of its own, after many wakes without data. So the kernel usually
// touches buffers only in these calls, and interrupts no other call of the thread. Where requests
// could be finished it signals an eventfd, which the poller watches. One of the waiting fibers, the
// leader, waits for that; it calls the kernel, and wakes the others whose requests have ended.
// Invariants
//   I1  While a fiber is parked for a request, there is a leader.
//   I2  A fiber leaves only after its request has ended: no request refers to a stack that is gone.
//   I3  Outside of call_kernel() the kernel has taken all requests.
//   I4  The eventfd is open while requests are under way.
// Order
//   [requests]     submit stores the tail (release) -> the kernel loads it; the kernel stores the
//                  head -> submit loads it (acquire): a place is free again.
//   [completions]  the kernel stores the tail -> reap loads it (acquire): the results; reap stores
//                  the head (release) -> the kernel loads it: a place is free again.
//   [mute]         unmute lets signals pass, then has_work loads the kernel's flags (both seq_cst),
//                  against: the kernel sets a flag by a locked instruction, then loads whether it
//                  may signal. One of them sees the other.
class Ring {
 public:
  // Returns the calling worker's ring; null if the system refuses one, and on plain threads.
  [[nodiscard]] static Ring* here() noexcept;

  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Submits the request, and parks until it has ended, or until `until` has cancelled it.
  [[nodiscard]] detail::OneShot perform(io_uring_sqe& request, detail::WaitReason reason,
                                        const Until& until) noexcept;

 private:
  struct Operation;
  struct Holder;
  using Word = detail::Atomic<std::uint32_t>;

  explicit Ring(Poller& poller) noexcept : poller_(poller) {}
  [[nodiscard]] bool open() noexcept;
  [[nodiscard]] bool map(const void* parameters) noexcept;
  [[nodiscard]] bool watch() noexcept;
  [[nodiscard]] Word& word(std::uint32_t offset) const noexcept {
    return *reinterpret_cast<Word*>(words_ + offset);
  }

  [[nodiscard]] bool submit(const io_uring_sqe& request, const Operation& self) noexcept;
  [[nodiscard]] bool has_work() const noexcept;
  int enter(unsigned submissions) noexcept;
  int call_kernel(unsigned submissions, const Operation& self) noexcept;
  void mute() noexcept;
  void unmute() noexcept;
  void reap(const Operation& self) noexcept;
  void rouse(Operation& operation) noexcept;
  [[nodiscard]] detail::OneShotEnd wait(Operation& self, const Until& until) noexcept;
  [[nodiscard]] detail::OneShotEnd park(Operation& self, const Until& until) noexcept;
  void cancel(Operation& self) noexcept;
  void enter_list(Operation& self) noexcept;
  void leave_list(Operation& self) noexcept;

  // Where the kernel has put the words that both sides use.
  struct Offsets {
    std::uint32_t submit_head, submit_tail, submit_mask, submit_flags;
    std::uint32_t done_head, done_tail, done_mask, done_flags;
  };

  Poller& poller_;
  IoHandle* handle_ = nullptr;  // For the eventfd.
  int ring_ = -1;
  std::byte* words_ = nullptr;
  std::size_t words_size_ = 0;
  io_uring_sqe* requests_ = nullptr;
  std::size_t requests_size_ = 0;
  const io_uring_cqe* completions_ = nullptr;
  Offsets at_{};
  Operation* first_ = nullptr;  // All requests that have not ended.
  Operation* leader_ = nullptr;
};

}  // namespace weft::io
