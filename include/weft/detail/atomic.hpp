// Provides atomics whose every access specifies its memory order.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

// Builds that model-check or count all accesses define Atomic in a header of their own.
#ifdef WEFT_ATOMIC_SHIM
#include WEFT_ATOMIC_SHIM
#endif

namespace weft::detail {

inline constexpr std::memory_order relaxed = std::memory_order_relaxed;
inline constexpr std::memory_order acquire = std::memory_order_acquire;
inline constexpr std::memory_order release = std::memory_order_release;
inline constexpr std::memory_order acq_rel = std::memory_order_acq_rel;
inline constexpr std::memory_order seq_cst = std::memory_order_seq_cst;

#ifdef WEFT_MODEL

// The model build replaces the atomics, so that the model checker explores the production source.
template <class T>
using Atomic = model::Atomic<T>;
using model::full_fence;
using model::pause_cpu;

#else

#ifdef WEFT_COUNT_ATOMICS

// The counting build's Atomic records which threads write data that other threads use.
template <class T>
using Atomic = counting::Atomic<T>;
using counting::full_fence;

#else

// Replaces std::atomic, but omits everything that hides a memory order: default arguments,
// operators and conversions. All accesses are inlined. Otherwise, in a partly instrumented build,
// the linker could keep the uninstrumented copy of a function for all files.
template <class T>
class Atomic {
 public:
  constexpr Atomic() noexcept = default;
  constexpr explicit Atomic(T initial) noexcept : value_(initial) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  [[nodiscard, gnu::always_inline]] T load(std::memory_order order) const noexcept {
    return value_.load(order);
  }
  [[gnu::always_inline]] void store(T desired, std::memory_order order) noexcept {
    value_.store(desired, order);
  }
  [[gnu::always_inline]] T exchange(T desired, std::memory_order order) noexcept {
    return value_.exchange(desired, order);
  }
  [[nodiscard, gnu::always_inline]] bool compare_exchange_weak(T& expected, T desired,
                                                               std::memory_order success,
                                                               std::memory_order failure) noexcept {
    return value_.compare_exchange_weak(expected, desired, success, failure);
  }
  [[nodiscard, gnu::always_inline]] bool compare_exchange_strong(
      T& expected, T desired, std::memory_order success, std::memory_order failure) noexcept {
    return value_.compare_exchange_strong(expected, desired, success, failure);
  }
  [[gnu::always_inline]] T fetch_add(T operand, std::memory_order order) noexcept {
    return value_.fetch_add(operand, order);
  }
  [[gnu::always_inline]] T fetch_sub(T operand, std::memory_order order) noexcept {
    return value_.fetch_sub(operand, order);
  }
  [[gnu::always_inline]] T fetch_or(T operand, std::memory_order order) noexcept {
    return value_.fetch_or(operand, order);
  }
  [[gnu::always_inline]] T fetch_and(T operand, std::memory_order order) noexcept {
    return value_.fetch_and(operand, order);
  }

  // Returns the address of a 32-bit value, for system calls that wait until the value changes.
  [[nodiscard]] std::uint32_t* futex_address() noexcept
      requires(sizeof(T) == sizeof(std::uint32_t)) {
    return reinterpret_cast<std::uint32_t*>(&value_);
  }

 private:
  std::atomic<T> value_{};
};

// Orders every earlier access before every later access; each call site names the matching fence.
inline void full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }

#endif

// Hints to the processor that the caller is in a spin loop.
inline void pause_cpu() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

#endif

}  // namespace weft::detail
