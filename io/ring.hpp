// One worker's io_uring, for requests of fibers that keep their thread.
#pragma once

#include <sys/syscall.h>
#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

#include <cstddef>
#include <cstdint>
#include <span>
#include <weft/detail/atomic.hpp>
#include <weft/detail/one_shot.hpp>
#include <weft/detail/waist.hpp>

#include "io/poller.hpp"

#if defined(IORING_SETUP_DEFER_TASKRUN) && defined(SYS_io_uring_setup) && \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define WEFT_HAS_RING 1
#else
#define WEFT_HAS_RING 0
#endif

struct io_uring_cqe;
struct io_uring_sqe;

namespace weft::io {

// The first request on a thread makes its ring. Only that thread uses the ring, which is destroyed
// when the thread ends. The kernel finishes requests only in calls of that thread
// (IORING_SETUP_DEFER_TASKRUN). An exception is a receive that the kernel has moved to a separate
// thread, after many wakes without data. So the kernel usually touches buffers only in these calls,
// and interrupts no other call of the thread. When requests could be finished, the kernel signals
// an eventfd, which the poller watches. One of the waiting fibers, the leader, waits for this
// signal. The leader calls the kernel, and wakes the other fibers whose requests have ended.
// Invariants
//   I1  While a fiber is parked for a request, there is a leader.
//   I2  A fiber leaves only after its requests have ended: none refers to a stack that is gone.
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
  // Returns the calling worker's ring; null if the system refuses to make it, and on plain threads.
  [[nodiscard]] static Ring* here() noexcept;

  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // The number of requests that a fiber may submit together.
  static constexpr std::size_t kMostTogether = 8;
  // Submits the requests together, and parks until one request has ended, or until `until` ends the
  // wait. Then cancels the other requests. Stores the result of each request, which is -ECANCELED
  // for cancelled requests.
  [[nodiscard]] detail::OneShotEnd perform(std::span<const io_uring_sqe> requests,
                                           std::span<int> results, detail::WaitReason reason,
                                           const Until& until) noexcept;

 private:
  struct Request;
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

  [[nodiscard]] io_uring_sqe& next_place(std::uint32_t index) noexcept;
  [[nodiscard]] unsigned submit(unsigned count, const Operation& self) noexcept;
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

  // The places of the words that the kernel and this thread share.
  struct Offsets {
    std::uint32_t submit_head, submit_tail, submit_mask, submit_flags;
    std::uint32_t done_head, done_tail, done_mask, done_flags;
  };

  Poller& poller_;
  IoHandle* handle_ = nullptr;  // The handle of the eventfd.
  int ring_ = -1;
  std::byte* words_ = nullptr;
  std::size_t words_size_ = 0;
  io_uring_sqe* requests_ = nullptr;
  std::size_t requests_size_ = 0;
  const io_uring_cqe* completions_ = nullptr;
  Offsets at_{};
  Operation* first_ = nullptr;  // A list: one for each fiber in perform().
  Operation* leader_ = nullptr;
};

}  // namespace weft::io
