// Makes objects and values at their first use, without the guard of a function's static variable.
// If another thread held such a guard during a fork, the child would wait for it forever. Instead,
// several threads may make the object or value, and all of them use the first one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <weft/detail/atomic.hpp>
#include <weft/detail/fork.hpp>

namespace weft::detail {

// An object that is never destroyed. The child of a fork makes its own object, because the parent's
// object may refer to threads or fibers that do not exist in the child.
// Order
//   [made]  get() stores made_ (acq_rel) -> another get() loads it (acquire): the object is
//           complete.
template <class T>
class FirstUse {
 public:
  constexpr FirstUse() noexcept = default;
  FirstUse(const FirstUse&) = delete;
  FirstUse& operator=(const FirstUse&) = delete;

  // Returns the object. If there is none yet, `make` creates it and returns a std::unique_ptr.
  // Throws: what `make` throws, and std::bad_alloc.
  template <class Make>
  [[nodiscard]] T& get(Make make) {
    Made* made = made_.load(acquire);  // [made]
    if (made != nullptr && made->forks == forks()) return *made->object;
    auto own = std::make_unique<Made>(Made{make(), forks()});
    if (made_.compare_exchange_strong(made, own.get(), acq_rel, acquire)) {  // [made]
      made = own.release();
    }
    return *made->object;
  }

 private:
  struct Made {
    std::unique_ptr<T> object;
    std::uint32_t forks;
  };
  Atomic<Made*> made_{nullptr};
};

// A small object that is never destroyed, and for which get() allocates no memory. (A constinit
// variable would be destroyed at the end of the process, when other static objects may still use
// it, and would be linked into programs that do not use it.)
// Order
//   [made]  get() stores made_ (acq_rel) -> another get() loads it (acquire): the object is
//           complete.
template <class T>
class StaticObject {
 public:
  constexpr StaticObject() noexcept = default;
  StaticObject(const StaticObject&) = delete;
  StaticObject& operator=(const StaticObject&) = delete;

  [[nodiscard]] const T& get() noexcept {
    const T* made = made_.load(acquire);  // [made]
    if (made != nullptr) return *made;
    // Relaxed: the counter only gives each thread a different place.
    const std::size_t place = taken_.fetch_add(1, relaxed);
    if (place < places_.size()) {
      const T* const own = ::new (places_[place].bytes) T;
      const T* none = nullptr;
      (void)made_.compare_exchange_strong(none, own, acq_rel, acquire);  // [made]
    }
    // If all places are taken, another thread is about to store the object.
    while (made == nullptr) made = made_.load(acquire);  // [made]
    return *made;
  }

 private:
  struct alignas(T) Place {
    std::byte bytes[sizeof(T)];
  };
  Atomic<const T*> made_{nullptr};
  Atomic<std::size_t> taken_{0};
  std::array<Place, 8> places_{};
};

// Returns the result of kCompute(). Calls kCompute() only if no earlier
// call has stored the result.
// Order
//   [computed]  computed_once() stores is_known (release) -> another call loads is_known (acquire):
//               the other call then sees the result in `value`.
template <auto kCompute>
[[nodiscard]] auto computed_once() noexcept(noexcept(kCompute())) {
  using Value = decltype(kCompute());
  static constinit Atomic<Value> value{};
  static constinit Atomic<bool> is_known{false};
  if (is_known.load(acquire)) return value.load(relaxed);  // [computed]
  const Value computed = kCompute();
  value.store(computed, relaxed);  // Relaxed: is_known publishes the value.
  is_known.store(true, release);   // [computed]
  return computed;
}

}  // namespace weft::detail
