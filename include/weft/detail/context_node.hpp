// Stores the caller's context in its list of locals.
#pragma once

#include <weft/detail/local_scope.hpp>

namespace weft {

class Context;

namespace detail {

// Makes `context`, or none if it is null, the caller's context while this object lives. The fiber
// or plain thread that makes the object also destroys it.
class ContextNode : private LocalScope {
 public:
  explicit ContextNode(const Context* context) noexcept;

  // Returns the innermost context of the caller, or null.
  [[nodiscard]] static const Context* current() noexcept;

 private:
  const Context* const context_;
};

}  // namespace detail

}  // namespace weft
