// One thread that sleeps until it is unparked.
#pragma once

#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>

namespace weft::base {

// Remembers one unpark: an unpark before the park makes the park return at once. The owner parks,
// and any thread unparks. An owner may also sleep elsewhere, such as in epoll_wait; the thread that
// unparks it then interrupts it there.
// Order
//   [token]  unpark exchanges kToken (acq_rel) -> the owner exchanges it away (acquire):
//            everything before the unpark is visible after the park.
class Parker {
 public:
  // Returns true if the owner was unparked, and false if the deadline passed first. Owner only.
  bool park_until(Deadline deadline) noexcept;
  // Returns true if the owner sleeps elsewhere: the caller must interrupt it there.
  bool unpark() noexcept;

  // Announces that the owner is about to sleep elsewhere. Returns false if the owner has already
  // been unparked; it must not sleep then. Owner only.
  [[nodiscard]] bool begin_elsewhere() noexcept;
  // Returns true if the owner has been unparked. Owner only, after begin_elsewhere() returned true.
  bool end_elsewhere() noexcept;
  // Any thread may call it. Relaxed: for tests.
  [[nodiscard]] bool is_elsewhere_hint() const noexcept {
    return state_.load(detail::relaxed) == kElsewhere;
  }

 private:
  static constexpr std::uint32_t kEmpty = 0;
  static constexpr std::uint32_t kSleeping = 1;
  static constexpr std::uint32_t kElsewhere = 2;
  static constexpr std::uint32_t kToken = 3;

  [[nodiscard]] bool announce(std::uint32_t where) noexcept;

  detail::Atomic<std::uint32_t> state_{kEmpty};
};

// Sleeps in the kernel while the word has the value `expected`, until woken or until the deadline.
// It may return early.
void futex_wait(detail::Atomic<std::uint32_t>& word, std::uint32_t expected,
                Deadline deadline) noexcept;
void futex_wake_one(detail::Atomic<std::uint32_t>& word) noexcept;
void futex_wake_all(detail::Atomic<std::uint32_t>& word) noexcept;

}  // namespace weft::base
