// Keeps an object for as long as the process exists.
#pragma once

namespace weft::detail {

// A constinit variable of a namespace whose object exists before main(), and while other static
// objects are destroyed. A static variable of a function would be made at its first use, under a
// guard: the child of a fork waits forever if another thread held the guard.
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
