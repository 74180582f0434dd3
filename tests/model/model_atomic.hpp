// The Atomic type of the model build: the same interface, with the model checker's atomics.
//
// <weft/detail/atomic.hpp> includes this file as WEFT_ATOMIC_SHIM, so that production source
// compiles unchanged. At every access the checker may switch threads, and a load may return any
// value that the memory order allows. README.md describes what that covers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <source_location>
#include <stop_token>
#include <string>
#include <type_traits>

// relacy.hpp redefines words of the language and of headers; the code after it restores their
// meaning.
#pragma push_macro("assert")
#pragma push_macro("calloc")
#pragma push_macro("delete")
#pragma push_macro("errno")
#pragma push_macro("free")
#pragma push_macro("malloc")
#pragma push_macro("memory_order_acq_rel")
#pragma push_macro("memory_order_acquire")
#pragma push_macro("memory_order_consume")
#pragma push_macro("memory_order_relaxed")
#pragma push_macro("memory_order_release")
#pragma push_macro("memory_order_seq_cst")
#pragma push_macro("new")
#pragma push_macro("realloc")
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#include <relacy/relacy.hpp>
#pragma GCC diagnostic pop
#pragma pop_macro("assert")
#pragma pop_macro("calloc")
#pragma pop_macro("delete")
#pragma pop_macro("errno")
#pragma pop_macro("free")
#pragma pop_macro("malloc")
#pragma pop_macro("memory_order_acq_rel")
#pragma pop_macro("memory_order_acquire")
#pragma pop_macro("memory_order_consume")
#pragma pop_macro("memory_order_relaxed")
#pragma pop_macro("memory_order_release")
#pragma pop_macro("memory_order_seq_cst")
#pragma pop_macro("new")
#pragma pop_macro("realloc")
#undef $

namespace weft::model {

using Where = std::source_location;

// A place in the source that orders memory. The mutation run weakens these places one by one.
struct Site {
  const char* file = nullptr;
  unsigned line = 0;
  unsigned column = 0;
  friend bool operator==(const Site&, const Site&) = default;
};

// Selects how the memory model is weakened, to check that an exploration notices the change. These
// are plain globals, because they change only between explorations.
struct Weakening {
  bool orders = false;         // Every order is relaxed.
  bool fences = false;         // full_fence() does nothing.
  Site site{};                 // The order of this one place is relaxed.
  bool records_sites = false;  // Fills `sites`.
};
inline Weakening weakening;

inline constexpr std::size_t kMaxSites = 256;
inline Site sites[kMaxSites];
inline std::size_t site_count = 0;

inline rl::debug_info info_of(const Where& where) {
  return {where.function_name(), where.file_name(), where.line()};
}

// Returns whether the access at this place must be relaxed.
inline bool is_weakened(const Where& where) {
  const Site here{where.file_name(), where.line(), where.column()};
  if (weakening.records_sites && site_count < kMaxSites &&
      std::find(sites, sites + site_count, here) == sites + site_count) {
    sites[site_count++] = here;
  }
  return weakening.site.file != nullptr && here == weakening.site;
}

// Whether the last step was a pause of the current thread.
inline bool has_paused = false;

inline rl::memory_order checker_order(std::memory_order order, const Where& where) {
  has_paused = false;
  if (order == std::memory_order::relaxed || weakening.orders || is_weakened(where)) {
    return rl::mo_relaxed;
  }
  switch (order) {
    case std::memory_order::acquire:
      return rl::mo_acquire;
    case std::memory_order::release:
      return rl::mo_release;
    case std::memory_order::acq_rel:
      return rl::mo_acq_rel;
    default:
      return rl::mo_seq_cst;
  }
}

// The checker supports no success order that is weaker than the failure order, so this strengthens
// the success order.
inline rl::memory_order success_order(std::memory_order success, std::memory_order failure,
                                      const Where& where) {
  if (failure == std::memory_order::acquire) {
    if (success == std::memory_order::relaxed) success = std::memory_order::acquire;
    if (success == std::memory_order::release) success = std::memory_order::acq_rel;
  }
  return checker_order(success, where);
}

// The threads that sleep in the kernel on a 32-bit value. Unlike the checker's own futex, it orders
// no memory, because the library does not rely on the kernel for ordering.
using Sleepers = rl::waitset<16>;
struct NoSleepers {};

// Holds a variable of the checker. The checker detects a destroyed variable by values that the
// destructor stores, which compilers treat as dead stores.
template <class V>
union Mortal {
  template <class T>
  explicit Mortal(T initial) : value(initial) {}
  ~Mortal() {
    value.~V();
    std::memset(static_cast<void*>(&value), 0, sizeof value);
    asm volatile("" : : "r"(&value) : "memory");
  }
  V value;
};

template <class T>
class Atomic {
 public:
  Atomic() : Atomic(T{}) {}
  explicit Atomic(T initial) : value_(initial) { has_paused = false; }
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  [[nodiscard]] T load(std::memory_order order, Where where = Where::current()) const {
    return value_.value.load(checker_order(order, where), info_of(where));
  }
  void store(T desired, std::memory_order order, Where where = Where::current()) {
    value_.value.store(desired, checker_order(order, where), info_of(where));
  }
  T exchange(T desired, std::memory_order order, Where where = Where::current()) {
    return value_.value.exchange(desired, checker_order(order, where), info_of(where));
  }
  [[nodiscard]] bool compare_exchange_weak(T& expected, T desired, std::memory_order success,
                                           std::memory_order failure,
                                           Where where = Where::current()) {
    return value_.value.compare_exchange(rl::bool_t<true>(), expected, desired,
                                         success_order(success, failure, where),
                                         checker_order(failure, where), info_of(where));
  }
  [[nodiscard]] bool compare_exchange_strong(T& expected, T desired, std::memory_order success,
                                             std::memory_order failure,
                                             Where where = Where::current()) {
    return value_.value.compare_exchange(rl::bool_t<false>(), expected, desired,
                                         success_order(success, failure, where),
                                         checker_order(failure, where), info_of(where));
  }
  T fetch_add(T operand, std::memory_order order, Where where = Where::current()) {
    return value_.value.fetch_add(operand, checker_order(order, where), info_of(where));
  }
  T fetch_sub(T operand, std::memory_order order, Where where = Where::current()) {
    return value_.value.fetch_sub(operand, checker_order(order, where), info_of(where));
  }
  T fetch_or(T operand, std::memory_order order, Where where = Where::current()) {
    return value_.value.fetch_or(operand, checker_order(order, where), info_of(where));
  }
  T fetch_and(T operand, std::memory_order order, Where where = Where::current()) {
    return value_.value.fetch_and(operand, checker_order(order, where), info_of(where));
  }

  // Returns a substitute for the value's address, which does not exist here. futex_syscall() in
  // model_futex.hpp accepts it.
  [[nodiscard]] std::uint32_t* futex_address() requires(sizeof(T) == sizeof(std::uint32_t)) {
    return reinterpret_cast<std::uint32_t*>(this);
  }

  // Returns the newest value, for checks and the kernel. It is no step of the modelled program.
  [[nodiscard]] T newest() const { return value_.value.debug_value(); }
  [[nodiscard]] Sleepers& sleepers() { return sleepers_; }

 private:
  Mortal<rl::atomic<T>> value_;
  [[no_unique_address]] std::conditional_t<sizeof(T) == sizeof(std::uint32_t), Sleepers, NoSleepers>
      sleepers_;
};

inline void full_fence(Where where = Where::current()) {
  if (weakening.fences || is_weakened(where)) return;
  rl::atomic_thread_fence(rl::mo_seq_cst, info_of(where));
}

// Informs the checker that this thread spins, so that systematic searches run other threads.
// Several pauses in a row count as one.
inline void pause_cpu(Where where = Where::current()) {
  static unsigned who = 0;
  if (has_paused && who == rl::thread_index()) return;
  who = rl::thread_index();
  has_paused = true;
  rl::yield(1, info_of(where));
}

}  // namespace weft::model
