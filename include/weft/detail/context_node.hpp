// The place of the caller's context in its list of locals.
#pragma once

#include <weft/detail/local_scope.hpp>

namespace weft {

class Context;

namespace detail {

// Makes `context`, or none if it is null, the caller's own while it lives. By one fiber or plain
// thread, which makes and destroys it.
class ContextNode : private LocalScope {
 public:
  explicit ContextNode(const Context* context) noexcept;

  // The innermost context of the caller, or null.
  [[nodiscard]] static const Context* current() noexcept;

 private:
  const Context* const context_;
};

}  // namespace detail

}  // namespace weft
