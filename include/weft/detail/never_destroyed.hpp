// Keeps an object for as long as the process exists.
#pragma once

namespace weft::detail {

// Holds a constinit global variable, which exists before main() and while other static objects are
// destroyed. A static variable of a function would be constructed at its first use, under a guard.
// The child of a fork would wait forever if another thread held that guard.
template <class T>
class NeverDestroyed {
 public:
  constexpr NeverDestroyed() noexcept : object_() {}
  constexpr ~NeverDestroyed() {}
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;

  [[nodiscard]] T& get() noexcept { return object_; }
  [[nodiscard]] const T& get() const noexcept { return object_; }

 private:
  union {
    T object_;
  };
};

}  // namespace weft::detail
