// Makes objects and values at their first use. A static variable of a function has a guard, and the
// child of a fork waits forever if another thread held the guard. Here, threads never wait: several
// threads may make the object or value, and all of them use the first one.
#pragma once

#include <memory>
#include <weft/detail/atomic.hpp>

namespace weft::detail {

// An object that is never destroyed.
// Order
//   [made]  get() publishes the object (acq_rel) -> another get() loads it (acquire): the object is
//           complete.
template <class T>
class FirstUse {
 public:
  constexpr FirstUse() noexcept = default;
  FirstUse(const FirstUse&) = delete;
  FirstUse& operator=(const FirstUse&) = delete;

  // Returns the object. If there is none, `make` returns it as a std::unique_ptr.
  // Throws: what `make` throws.
  template <class Make>
  [[nodiscard]] T& get(Make make) {
    if (T* made = object_.load(acquire)) return *made;  // [made]
    std::unique_ptr<T> own = make();
    T* other = nullptr;
    if (!object_.compare_exchange_strong(other, own.get(), acq_rel, acquire))
      return *other;  // [made]
    return *own.release();
  }
  // Makes the next get() make another object. The child of a fork calls it if the object has state
  // of threads or fibers that the child does not have. Relaxed: the child has one thread.
  void forget() noexcept { object_.store(nullptr, relaxed); }

 private:
  Atomic<T*> object_{nullptr};
};

// Returns the result of kCompute(), which is the same at each call, and computes it only if no call
// has ended before.
// Order
//   [computed]  the value is stored; is_known is stored (release) -> another call loads is_known
//               (acquire): the value is visible.
template <auto kCompute>
[[nodiscard]] auto computed_once() noexcept(noexcept(kCompute())) {
  using Value = decltype(kCompute());
  static constinit Atomic<Value> value{};
  static constinit Atomic<bool> is_known{false};
  if (is_known.load(acquire)) return value.load(relaxed);  // [computed]
  const Value computed = kCompute();
  value.store(computed, relaxed);  // Relaxed: [computed] publishes the value.
  is_known.store(true, release);   // [computed]
  return computed;
}

}  // namespace weft::detail
