// What is so for the calling fiber or thread while a scope of it lasts.
#pragma once

#include <cstdint>
#include <weft/detail/local_node.hpp>

namespace weft::detail {

// A node of the caller's list of locals that its scope owns. Nodes of one key nest: the innermost
// is found. By one fiber or plain thread, which makes and destroys it.
class LocalScope : private LocalNode {
 public:
  LocalScope(const LocalScope&) = delete;
  LocalScope& operator=(const LocalScope&) = delete;

 protected:
  explicit LocalScope(std::uint64_t of_key) noexcept;
  ~LocalScope();
  // The caller's innermost one of the key; null if there is none.
  [[nodiscard]] static const LocalScope* innermost(std::uint64_t of_key) noexcept;
};

}  // namespace weft::detail
