// Stores a value of a FiberLocal in a list that belongs to one fiber or thread.
#pragma once

#include <cstdint>

namespace weft::detail {

// Only one fiber or thread uses the node, so no lock is needed. The newest value is first in the
// list and is destroyed first. A search in a short list takes one or two loads per value. Found
// nodes are not moved to the front, although that would be faster for a few dozen values: it would
// require a second list for the order of creation, and a write in each lookup.
struct LocalNode {
  LocalNode* next;
  std::uint64_t key;  // The key of the FiberLocal, which may have been destroyed.
  void (*destroy)(LocalNode* node) noexcept;
};

// Returns the newest node with the key; null if there is none.
[[nodiscard]] inline LocalNode* find_newest(LocalNode* first, std::uint64_t key) noexcept {
  while (first != nullptr && first->key != key) first = first->next;
  return first;
}

// Destroys values until the list is empty. The loop is necessary because a destructor may use, and
// so recreate, other values.
inline void destroy_all(LocalNode*& first) noexcept {
  while (LocalNode* node = first) {
    first = node->next;
    node->destroy(node);
  }
}

// Returns the values of the calling fiber or plain thread, newest first. The reference is valid
// until the caller ends.
[[nodiscard]] LocalNode*& locals() noexcept;
// Destroys the caller's values. This also happens automatically when the caller ends.
inline void destroy_locals() noexcept { destroy_all(locals()); }

// The keys of the library's own values. They are constants, because a static object may use a value
// before the variables of another file exist.
enum OwnKey : std::uint64_t {
  kContextKey = 1,
  kGroupKey,
  kBehalfKey,
  kPoolTaskKey,
  kSubmittingKey,
  kPosixKey,
  kFirstFreeKey,
};

// Returns a key that is not an OwnKey, and that no FiberLocal in this process has used before.
[[nodiscard]] std::uint64_t new_local_key() noexcept;

}  // namespace weft::detail
