// Gives the calling fiber or thread a property until the end of a scope.
#pragma once

#include <cstdint>
#include <weft/detail/local_node.hpp>

namespace weft::detail {

// A scope adds a node to the caller's list of fiber-local values, and removes it when the scope
// ends. Nodes with the same key nest: a search finds the innermost node. The fiber or plain thread
// that makes a scope must destroy it.
class LocalScope : private LocalNode {
 public:
  LocalScope(const LocalScope&) = delete;
  LocalScope& operator=(const LocalScope&) = delete;

 protected:
  explicit LocalScope(std::uint64_t of_key) noexcept;
  ~LocalScope();
  // Returns the caller's innermost scope with the key; null if there is none.
  [[nodiscard]] static const LocalScope* innermost(std::uint64_t of_key) noexcept;
};

}  // namespace weft::detail
