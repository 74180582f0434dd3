// Variables of which each fiber has its own.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <weft/detail/local_node.hpp>
#include <weft/detail/waist.hpp>

namespace weft {

// A thread_local for fibers: a fiber moves between threads and must not use theirs. A plain
// thread has a value of its own, too. All calls from fibers and plain threads; they park and throw
// where they say so.
//
//   weft::FiberLocal<int> depth;                                          // 0 in each fiber.
//   weft::FiberLocal<Buffer> scratch([] { return Buffer(64 * 1024); });
//   ++*depth;
//
// A value is made when its fiber first uses it, and destroyed when that ends: after its callable,
// in the reverse order of their making, and before a join() of the fiber returns. (WaitGroup::go()
// counts down before.) Its destructor may park and use other FiberLocals, and must not throw. A
// thread's values go with its thread_locals. A fiber of a pool keeps its values from task to task.
// The FiberLocal may be destroyed first: values that exist die with their fibers all the same.
// A look costs a few nanoseconds, and a little more for each value that the fiber has made later.
// Calls synchronize with nothing.
template <class T>
class FiberLocal {
 public:
  // Values begin as T().
  FiberLocal() requires std::default_initializable<T> : FiberLocal([] { return T(); }) {}
  // Values begin as what `make` returns: it is called on the fiber that first uses its value, so by
  // several at a time. It may park and use other FiberLocals, but not this one. An exception that
  // `make` throws comes out of the use, and the next use calls it again.
  template <class F>
  requires std::is_invocable_r_v<T, F&>
  explicit FiberLocal(F make) : make_(std::move(make)) {}
  FiberLocal(const FiberLocal&) = delete;
  FiberLocal& operator=(const FiberLocal&) = delete;

  // The caller's value, valid until its fiber or thread ends. Other fibers may be given a
  // reference. The first call makes it: throws what that throws, and std::bad_alloc.
  [[nodiscard]] T& get() const {
    detail::LocalNode* const node = detail::find_newest(detail::locals(), key_);
    return node != nullptr ? static_cast<Node*>(node)->value : add();
  }
  // Does the same as get().
  [[nodiscard]] T& operator*() const { return get(); }
  // Does the same as get().
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
    // Not before: make_ may have added others, and the fiber have moved.
    detail::LocalNode*& first = detail::locals();
    node->next = first;
    first = node;
    return node->value;
  }

  const std::uint64_t key_ = detail::new_local_key();
  const std::function<T()> make_;
};

}  // namespace weft
