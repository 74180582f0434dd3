// A callable that is moved, run once and gone.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace weft::detail {

// A move-only void() callable that runs at most once.
// Callables of up to kInlineSize bytes live inside; larger ones in one heap allocation.
// Not thread-safe: one owner at a time.
class Task {
 public:
  static constexpr std::size_t kInlineSize = 64;

  Task() noexcept = default;

  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Task> && std::is_invocable_v<std::decay_t<F>&>)
      Task(F&& callable) {  // NOLINT(google-explicit-constructor): a callable is a task.
    using Callable = std::decay_t<F>;
    if constexpr (kFitsInline<Callable>) {
      ::new (static_cast<void*>(storage_)) Callable(std::forward<F>(callable));
      operations_ = &kInline<Callable>;
    } else {
      auto* boxed = new Callable(std::forward<F>(callable));
      std::memcpy(storage_, &boxed, sizeof boxed);
      operations_ = &kBoxed<Callable>;
    }
  }

  Task(Task&& other) noexcept { take(other); }
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~Task() { reset(); }

  [[nodiscard]] explicit operator bool() const noexcept { return operations_ != nullptr; }

  // Runs the callable and destroys it, also when it throws. Requires a callable.
  void run() { std::exchange(operations_, nullptr)->run(storage_); }

  // Destroys the callable without running it.
  void reset() noexcept {
    if (operations_ != nullptr) std::exchange(operations_, nullptr)->destroy(storage_);
  }

 private:
  struct Operations {
    void (*run)(void* storage);
    void (*destroy)(void* storage) noexcept;
    // Null where copying the bytes moves the callable: true of what most programs capture.
    void (*relocate)(void* from, void* to) noexcept;
  };

  template <class Callable>
  static constexpr bool kFitsInline =
      sizeof(Callable) <= kInlineSize &&
      alignof(Callable) <= alignof(void*) && std::is_nothrow_move_constructible_v<Callable>;

  template <class Callable>
  struct DestroyOnExit {
    Callable& callable;
    ~DestroyOnExit() { callable.~Callable(); }
  };

  template <class Callable>
  static void run_inline(void* storage) {
    auto& callable = *std::launder(static_cast<Callable*>(storage));
    const DestroyOnExit<Callable> guard{callable};
    callable();
  }
  template <class Callable>
  static void destroy_inline(void* storage) noexcept {
    std::launder(static_cast<Callable*>(storage))->~Callable();
  }
  template <class Callable>
  static void relocate_inline(void* from, void* to) noexcept {
    auto& source = *std::launder(static_cast<Callable*>(from));
    ::new (to) Callable(std::move(source));
    source.~Callable();
  }
  template <class Callable>
  static Callable* boxed(void* storage) noexcept {
    Callable* pointer = nullptr;
    std::memcpy(&pointer, storage, sizeof pointer);
    return pointer;
  }
  template <class Callable>
  static void run_boxed(void* storage) {
    const std::unique_ptr<Callable> owner(boxed<Callable>(storage));
    (*owner)();
  }
  template <class Callable>
  static void destroy_boxed(void* storage) noexcept {
    delete boxed<Callable>(storage);
  }

  template <class Callable>
  static constexpr Operations kInline{
      &run_inline<Callable>, &destroy_inline<Callable>,
      std::is_trivially_copyable_v<Callable> ? nullptr : &relocate_inline<Callable>};
  template <class Callable>
  static constexpr Operations kBoxed{&run_boxed<Callable>, &destroy_boxed<Callable>, nullptr};

  void take(Task& other) noexcept {
    operations_ = std::exchange(other.operations_, nullptr);
    if (operations_ == nullptr) return;
    if (operations_->relocate == nullptr) {
      std::memcpy(storage_, other.storage_, kInlineSize);
    } else {
      operations_->relocate(other.storage_, storage_);
    }
  }

  const Operations* operations_ = nullptr;
  alignas(void*) std::byte storage_[kInlineSize];
};

}  // namespace weft::detail
