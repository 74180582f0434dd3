// One value of a FiberLocal, in the list of its fiber or thread.
#pragma once

#include <cstdint>

namespace weft::detail {

// Of its owner alone, so nothing is locked. The list has the newest first: then the order of
// destruction is the order of the list, and looking for one of a handful takes a load or two each.
// (Moving what was found to the front would be quicker for a few dozen of them, but would need a
// second list for the order of creation, and a write for each look.)
struct LocalNode {
  LocalNode* next;
  std::uint64_t key;  // Of the FiberLocal, which may be gone.
  void (*destroy)(LocalNode* node) noexcept;
};

// The newest one of the list that has the key; null if none has.
[[nodiscard]] inline LocalNode* find_newest(LocalNode* first, std::uint64_t key) noexcept {
  while (first != nullptr && first->key != key) first = first->next;
  return first;
}

// Until there are none: a destructor may use other values, which makes them anew.
inline void destroy_all(LocalNode*& first) noexcept {
  while (LocalNode* node = first) {
    first = node->next;
    node->destroy(node);
  }
}

// A key that no FiberLocal of the process has had.
[[nodiscard]] std::uint64_t new_local_key() noexcept;

}  // namespace weft::detail
