// What a fiber and the handle that joins it share.
#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <weft/detail/waiter.hpp>

namespace weft::detail {

// The untyped core: whether the fiber has finished, and who waits for that.
// Invariants
//   I1  word_ is kRunning, kFinished, or the address of the one parked joiner.
//   I2  references_ counts the fiber and the handle; the last one out deletes the state.
// Order
//   [finish]  finish exchanges word_ (acq_rel) -> done, join (acquire): the result is visible;
//             the joiner's publishing exchange (acq_rel) -> finish: the joiner's waker is visible.
//   [refs]    release_reference (acq_rel, both sides): the last one sees all uses of the other.
class JoinCore {
 public:
  JoinCore() = default;
  JoinCore(const JoinCore&) = delete;
  JoinCore& operator=(const JoinCore&) = delete;

  [[nodiscard]] bool done() const noexcept { return word_.load(acquire) == kFinished; }  // [finish]

  // By the fiber, once, after it has stored its outcome.
  void finish() noexcept {
    const std::uintptr_t before = word_.exchange(kFinished, acq_rel);  // [finish]
    if (before != kRunning) wake_joiner(before);
  }
  // By the one handle. Parks until finish().
  void join() noexcept;
  // By the one handle. False when the deadline passed first; it may be called again.
  [[nodiscard]] bool join_until(Deadline deadline) noexcept;

  // True for the last one, who then deletes the state.
  [[nodiscard]] bool release_reference() noexcept {
    return references_.fetch_sub(1, acq_rel) == 1;  // [refs]
  }

 private:
  static constexpr std::uintptr_t kRunning = 0;
  static constexpr std::uintptr_t kFinished = 1;

  struct Joiner;
  static void publish(void* joiner) noexcept;
  static void wake_joiner(std::uintptr_t joiner) noexcept;

  Atomic<std::uintptr_t> word_{kRunning};
  Atomic<std::uint32_t> references_{2};
};

// The outcome of a fiber: a value or the exception that ended it.
template <class T>
class JoinState : public JoinCore {
  using Stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

 public:
  template <class F>
  void run(F& callable) noexcept {
    try {
      if constexpr (std::is_void_v<T>) {
        callable();
        value_.emplace();
      } else {
        value_.emplace(callable());
      }
    } catch (...) {
      exception_ = std::current_exception();
    }
    finish();
  }

  // Requires done(). Moves the value out, or throws the fiber's exception.
  T take() {
    if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
    if constexpr (!std::is_void_v<T>) return std::move(*value_);
  }

 private:
  std::optional<Stored> value_;
  std::exception_ptr exception_;
};

}  // namespace weft::detail
