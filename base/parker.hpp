// Lets one thread sleep until another thread unparks it.
#pragma once

#include <cstdint>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>

namespace weft::base {

// Stores one unpark, so that an unpark before the park makes the park return at once. The owner
// parks, and any thread unparks. An owner may also sleep elsewhere, such as in epoll_wait(); the
// thread that unparks the owner must then interrupt that sleep.
// Order
//   [token]  unpark stores kToken by exchange (acq_rel) -> the owner takes it by exchange
//            (acquire): everything before the unpark is visible after the park.
class Parker {
 public:
  // Returns true if the owner was unparked, and false if the deadline passed first. Owner only.
  bool park_until(Deadline deadline) noexcept;
  // Unparks the owner. Returns true if the owner sleeps elsewhere; the caller must then interrupt
  // that sleep.
  bool unpark() noexcept;

  // Announces that the owner is about to sleep elsewhere. Returns false if the owner has already
  // been unparked; the owner must then not sleep. Owner only.
  [[nodiscard]] bool begin_elsewhere() noexcept;
  // Returns true if the owner has been unparked. Owner only, after begin_elsewhere() returned true.
  bool end_elsewhere() noexcept;
  // Any thread may call it. Relaxed: a hint.
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

// Sleeps in the kernel while the word has the value `expected`, until a wake or the deadline. May
// return early.
void futex_wait(detail::Atomic<std::uint32_t>& word, std::uint32_t expected,
                Deadline deadline) noexcept;
void futex_wake_one(detail::Atomic<std::uint32_t>& word) noexcept;
void futex_wake_all(detail::Atomic<std::uint32_t>& word) noexcept;

}  // namespace weft::base
