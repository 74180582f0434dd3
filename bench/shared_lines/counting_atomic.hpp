// The Atomic type of the counting build: a std::atomic that records each access in the ledger.
//
// <weft/detail/atomic.hpp> includes this file as WEFT_ATOMIC_SHIM, so that production sources are
// counted unchanged. Boost.Lockfree has separate atomics, whose accesses are not counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>

namespace weft::counting {

using Where = std::source_location;

enum class Access : std::uint8_t { load, store, exchange };

// Defined in ledger.cpp. It is never inlined, because its return address identifies the function
// that made the access.
void record(Access access, const void* address, const Where& where) noexcept;
void record_fence() noexcept;

template <class T>
class Atomic {
 public:
  constexpr Atomic() noexcept = default;
  constexpr explicit Atomic(T initial) noexcept : value_(initial) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  [[nodiscard, gnu::always_inline]] T load(std::memory_order order,
                                           const Where& where = Where::current()) const noexcept {
    record(Access::load, &value_, where);
    return value_.load(order);
  }
  [[gnu::always_inline]] void store(T desired, std::memory_order order,
                                    const Where& where = Where::current()) noexcept {
    record(Access::store, &value_, where);
    value_.store(desired, order);
  }
  [[gnu::always_inline]] T exchange(T desired, std::memory_order order,
                                    const Where& where = Where::current()) noexcept {
    record(Access::exchange, &value_, where);
    return value_.exchange(desired, order);
  }
  [[nodiscard, gnu::always_inline]] bool compare_exchange_weak(
      T& expected, T desired, std::memory_order success, std::memory_order failure,
      const Where& where = Where::current()) noexcept {
    record(Access::exchange, &value_, where);
    return value_.compare_exchange_weak(expected, desired, success, failure);
  }
  [[nodiscard, gnu::always_inline]] bool compare_exchange_strong(
      T& expected, T desired, std::memory_order success, std::memory_order failure,
      const Where& where = Where::current()) noexcept {
    record(Access::exchange, &value_, where);
    return value_.compare_exchange_strong(expected, desired, success, failure);
  }
  [[gnu::always_inline]] T fetch_add(T operand, std::memory_order order,
                                     const Where& where = Where::current()) noexcept {
    record(Access::exchange, &value_, where);
    return value_.fetch_add(operand, order);
  }
  [[gnu::always_inline]] T fetch_sub(T operand, std::memory_order order,
                                     const Where& where = Where::current()) noexcept {
    record(Access::exchange, &value_, where);
    return value_.fetch_sub(operand, order);
  }
  [[gnu::always_inline]] T fetch_or(T operand, std::memory_order order,
                                    const Where& where = Where::current()) noexcept {
    record(Access::exchange, &value_, where);
    return value_.fetch_or(operand, order);
  }
  [[gnu::always_inline]] T fetch_and(T operand, std::memory_order order,
                                     const Where& where = Where::current()) noexcept {
    record(Access::exchange, &value_, where);
    return value_.fetch_and(operand, order);
  }

  [[nodiscard]] std::uint32_t* futex_address() noexcept
      requires(sizeof(T) == sizeof(std::uint32_t)) {
    return reinterpret_cast<std::uint32_t*>(&value_);
  }

 private:
  std::atomic<T> value_{};
};

inline void full_fence() noexcept {
  record_fence();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace weft::counting
