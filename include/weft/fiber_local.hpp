// Variables with one value per fiber.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <weft/detail/local_node.hpp>
#include <weft/detail/waist.hpp>

namespace weft {

// A variable with a separate value in each fiber and each plain thread, like a thread_local.
//
//   weft::FiberLocal<int> depth;                                          // 0 in each fiber.
//   weft::FiberLocal<Buffer> scratch([] { return Buffer(64 * 1024); });
//   ++*depth;
//
// The first use in a fiber creates its value. A fiber's values are destroyed in reverse order of
// creation, after its callable has returned and before join() returns. WaitGroup::wait() and
// Runtime::run() may return before the values of their fibers are destroyed. A value's destructor
// may park and use other FiberLocals, but must not throw. A plain thread destroys its values with
// its thread_locals. A fiber of a pool runs several tasks, which share its values. An access
// searches the fiber's values, newest first, in a few nanoseconds if the fiber has few values.
// Context: fibers and plain threads; no call parks, unless the creation of the value does.
// Throws: what moving `make` or creating the value throws, and std::bad_alloc.
// Lifetime: a FiberLocal may be destroyed before its values, which live as long as their fibers.
template <class T>
class FiberLocal {
 public:
  // Creates each value as T().
  FiberLocal() requires std::default_initializable<T> : FiberLocal([] { return T(); }) {}
  // Each fiber that needs a value calls `make`; several fibers may call `make` at once. `make`
  // may park and use other FiberLocals, but not this FiberLocal. If `make` throws, the next use
  // calls `make` again.
  template <class F>
  requires std::is_invocable_r_v<T, F&>
  explicit FiberLocal(F make) : make_(std::move(make)) {}
  FiberLocal(const FiberLocal&) = delete;
  FiberLocal& operator=(const FiberLocal&) = delete;

  // Returns the caller's value, which lives until the caller ends. Other fibers may use it, too.
  [[nodiscard]] T& get() const {
    detail::LocalNode* const node = detail::find_newest(detail::locals(), key_);
    return node != nullptr ? static_cast<Node*>(node)->value : add();
  }
  // Accesses the value, as get() does.
  [[nodiscard]] T& operator*() const { return get(); }
  // Accesses the value, as get() does.
  [[nodiscard]] T* operator->() const { return &get(); }

 private:
  struct Node : detail::LocalNode {
    Node(std::uint64_t owner, const std::function<T()>& make)
        : LocalNode{nullptr, owner, &destroy_node}, value(make()) {}
    static void destroy_node(detail::LocalNode* node) noexcept { delete static_cast<Node*>(node); }
    T value;
  };

  [[gnu::noinline]] T& add() const {
    auto* node = new Node(key_, make_);
    // Call locals() only after make_, which may add nodes or move the fiber to another thread.
    detail::LocalNode*& first = detail::locals();
    node->next = first;
    first = node;
    return node->value;
  }

  const std::uint64_t key_ = detail::new_local_key();
  const std::function<T()> make_;
};

}  // namespace weft
