// Stores a callable that is moved, run once and destroyed.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <weft/detail/atomic.hpp>
#include <weft/detail/small_block.hpp>

namespace weft::detail {

// The type that a dump shows for a callable: Callable, or the type that Callable declares as Shown.
// If this type is void, a dump shows no type.
template <class Callable>
struct ShownType {
  using Type = Callable;
};
template <class Callable>
requires requires { typename Callable::Shown; }
struct ShownType<Callable> {
  using Type = typename Callable::Shown;
};

// A callable with a join target: the object through which callers wait for the callable, for
// example a JoinCore or a WaitGroup.
template <class Callable>
concept HasJoinTarget = requires(const Callable& callable) {
  { callable.join_target() }
  noexcept->std::same_as<const void*>;
};

// A move-only void() callable that runs at most once. A nothrow-movable callable of up to
// kInlineSize bytes with normal alignment is stored in the task, others in allocated memory. Not
// thread-safe: a task has one owner at a time. Any thread may call the `_hint` functions.
class Task {
 public:
  static constexpr std::size_t kInlineSize = 32;

  Task() noexcept = default;

  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Task> && std::is_invocable_v<std::decay_t<F>&>)
      Task(F&& callable)  // NOLINT(google-explicit-constructor): a callable is a task.
      : Task(std::in_place_type<std::decay_t<F>>, std::forward<F>(callable)) {}

  // Constructs the callable in place, from its members. If a complete callable were moved instead,
  // it would be read in wider words than it was just written, which stalls the processor.
  template <class Callable, class... Members>
  explicit Task(std::in_place_type_t<Callable>, Members&&... members) {
    if constexpr (kFitsInline<Callable>) {
      ::new (static_cast<void*>(storage_)) Callable{std::forward<Members>(members)...};
      set_operations(kInline<Callable>);
    } else {
      auto* boxed = new Box<Callable>{{}, Callable{std::forward<Members>(members)...}};
      __builtin_memcpy(storage_, &boxed, sizeof boxed);
      set_operations(kBoxed<Callable>);
    }
  }

  Task(Task&& other) noexcept : Task(other, other.take_operations()) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      reset();
      if (other) refill(std::move(other));
    }
    return *this;
  }
  // Like the move assignment, but faster. This task must be empty; `other` must have a callable.
  void refill(Task&& other) noexcept {
    const Operations& operations = other.use_up();
    set_operations(operations);
    take_storage(other, operations);
  }
  ~Task() { reset(); }

  [[nodiscard]] explicit operator bool() const noexcept {
    return (operations_.load(relaxed) & kUsedUp) == 0;
  }

  // Runs the callable and destroys it, even if it throws. Requires a callable.
  void run() { use_up().run(storage_); }

  // Destroys the callable without running it.
  void reset() noexcept {
    if (*this) use_up().destroy(storage_);
  }

  // Returns the stored callable, which must be of type Callable and must not have run.
  template <class Callable>
  [[nodiscard]] Callable& callable() noexcept {
    if constexpr (kFitsInline<Callable>) {
      return *std::launder(reinterpret_cast<Callable*>(storage_));
    } else {
      return boxed<Callable>(storage_)->callable;
    }
  }

  // Returns the join target of the callable; null for most callables. Requires a callable.
  [[nodiscard]] const void* join_target() const noexcept {
    const auto target_of = operations_hint()->join_target;
    return target_of == nullptr ? nullptr : target_of(storage_);
  }

  // Returns the join target, even while another thread destroys the task. read(from, to, bytes)
  // must copy memory, and return false on failure. Reads only the callable's first bytes.
  template <class Read>
  [[nodiscard]] const void* join_target_hint(Read read) const noexcept {
    const Operations* operations = operations_hint();
    if (operations == nullptr || operations->join_target == nullptr) return nullptr;
    alignas(std::max_align_t) std::byte copy[kInlineSize];
    if (!read(storage_, copy, sizeof copy)) return nullptr;
    if (operations->box_bytes == 0) return operations->join_target(copy);
    alignas(std::max_align_t) std::byte box[kMostBoxBytes]{};
    const void* from = nullptr;
    __builtin_memcpy(&from, copy, sizeof from);
    const std::size_t size =
        operations->box_bytes < sizeof box ? operations->box_bytes : sizeof box;
    if (!read(from, box, size)) return nullptr;
    const void* pointer = box;
    return operations->join_target(&pointer);
  }

  // Returns the ShownType of the callable, even after it has run; null without a type or RTTI.
  [[nodiscard]] const std::type_info* type_hint() const noexcept {
    const Operations* operations = operations_hint();
    return operations == nullptr ? nullptr : operations->type;
  }
  // Returns an address in the program or library that created the callable; null if there is none.
  [[nodiscard]] const void* image_hint() const noexcept { return operations_hint(); }

 private:
  struct Operations {
    void (*run)(void* storage);
    void (*destroy)(void* storage) noexcept;
    // Null if copying the bytes suffices to move the callable, as for most lambda expressions.
    void (*relocate)(void* from, void* to) noexcept;
    const void* (*join_target)(const void* storage) noexcept;  // Null if there is no target.
    const std::type_info* type;
    std::size_t box_bytes;  // 0 for a callable inside the task.
  };
  static constexpr std::size_t kMostBoxBytes = 256;

  // This bit of operations_ is set before the callable is run, moved or destroyed. It is also set
  // in a task that never had a callable. If it is set, the task is empty.
  static constexpr std::uintptr_t kUsedUp = 1;

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
  struct Box : SmallBlock {
    Callable callable;
  };
  template <class Callable>
  static Box<Callable>* boxed(const void* storage) noexcept {
    Box<Callable>* pointer = nullptr;
    __builtin_memcpy(&pointer, storage, sizeof pointer);
    return pointer;
  }
  template <class Callable>
  static void run_boxed(void* storage) {
    // Not a std::unique_ptr, because including <memory> would lengthen each compilation.
    const struct Owner {
      Box<Callable>* box;
      ~Owner() { delete box; }
    } owner{boxed<Callable>(storage)};
    owner.box->callable();
  }
  template <class Callable>
  static void destroy_boxed(void* storage) noexcept {
    delete boxed<Callable>(storage);
  }

  template <class Callable>
  static const void* target_inline(const void* storage) noexcept {
    return std::launder(static_cast<const Callable*>(storage))->join_target();
  }
  template <class Callable>
  static const void* target_boxed(const void* storage) noexcept {
    return boxed<Callable>(storage)->callable.join_target();
  }
  template <class Callable, bool kIsBoxed>
  [[nodiscard]] static constexpr auto target_of() noexcept -> const
      void* (*)(const void*) noexcept {
    if constexpr (!HasJoinTarget<Callable>) {
      return nullptr;
    } else if constexpr (kIsBoxed) {
      return &target_boxed<Callable>;
    } else {
      return &target_inline<Callable>;
    }
  }

  template <class Callable>
  [[nodiscard]] static constexpr const std::type_info* type_of() noexcept {
#ifdef __cpp_rtti
    using Type = typename ShownType<Callable>::Type;
    if constexpr (!std::is_void_v<Type>) return &typeid(Type);
#endif
    return nullptr;
  }

  template <class Callable>
  static constexpr Operations kInline{
      &run_inline<Callable>,
      &destroy_inline<Callable>,
      std::is_trivially_copyable_v<Callable> ? nullptr : &relocate_inline<Callable>,
      target_of<Callable, false>(),
      type_of<Callable>(),
      0};
  template <class Callable>
  static constexpr Operations kBoxed{
      &run_boxed<Callable>,        &destroy_boxed<Callable>, nullptr,
      target_of<Callable, true>(), type_of<Callable>(),      sizeof(Box<Callable>)};

  void set_operations(const Operations& operations) noexcept {
    operations_.store(reinterpret_cast<std::uintptr_t>(&operations), relaxed);
  }
  [[nodiscard]] const Operations* operations_hint() const noexcept {
    return reinterpret_cast<const Operations*>(operations_.load(relaxed) & ~kUsedUp);
  }
  // Initializes operations_ with the final value, so that operations_ is written only once.
  Task(Task& other, std::uintptr_t operations) noexcept : operations_(operations) {
    if ((operations & kUsedUp) == 0)
      take_storage(other, *reinterpret_cast<const Operations*>(operations));
  }
  [[nodiscard]] std::uintptr_t take_operations() noexcept {
    const std::uintptr_t operations = operations_.load(relaxed);
    operations_.store(operations | kUsedUp, relaxed);
    return operations;
  }
  [[nodiscard]] const Operations& use_up() noexcept {
    return *reinterpret_cast<const Operations*>(take_operations());
  }

  // Copies one word at a time. Words just written may still be in the store buffer. From there, a
  // processor forwards a word to a read of that word, but not to a read of two words.
  static void copy_words(const std::byte* from, std::byte* to) noexcept {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kInlineSize; i += sizeof(std::uintptr_t)) {
      std::uintptr_t word;
      __builtin_memcpy(&word, from + i, sizeof word);
      asm("" : "+r"(word));  // Otherwise the compiler merges two reads into one.
      __builtin_memcpy(to + i, &word, sizeof word);
    }
  }

  void take_storage(Task& other, const Operations& operations) noexcept {
    if (operations.relocate == nullptr) [[likely]] {
      copy_words(other.storage_, storage_);
    } else {
      operations.relocate(other.storage_, storage_);
    }
  }

  // The address of an Operations, with the bit kUsedUp if the task is empty. A task that never had
  // a callable contains only this bit. Relaxed: only the owner writes operations_. If a dump
  // reads an old address, it still finds a valid Operations, because these objects are constants.
  Atomic<std::uintptr_t> operations_{kUsedUp};
  alignas(void*) std::byte storage_[kInlineSize];
};

}  // namespace weft::detail
