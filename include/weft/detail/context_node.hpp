// Stores the caller's context in the caller's list of fiber-local values.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/local_scope.hpp>

namespace weft {

class Context;

namespace detail {

// True once any caller in this process has had a context; never reset. Relaxed: each caller that
// has a context either set the flag itself or was started after that, so the caller reads true.
extern Atomic<bool> contexts_are_used;

// While this object exists, `context` is the caller's context; if `context` is null, the caller has
// none. The fiber or plain thread that makes the object must also destroy it.
class ContextNode : private LocalScope {
 public:
  // Returns the context of `maker`; the result is never null. The first call creates the context.
  using Make = const Context* (*)(void* maker) noexcept;

  explicit ContextNode(const Context* context) noexcept;
  // Installs the context that `make` returns as the caller's context. Each read of the context
  // calls `make` on the caller's fiber or thread, so a context that is never read costs nothing.
  ContextNode(Make make, void* maker) noexcept;

  // Returns the innermost context of the caller, or null.
  [[nodiscard]] static const Context* current() noexcept;
  // Returns false if the caller certainly has no context. The call costs one load and a branch.
  [[nodiscard]] static bool may_have_one() noexcept { return contexts_are_used.load(relaxed); }

 private:
  const Context* const context_;
  const Make make_ = nullptr;
  void* const maker_ = nullptr;
};

}  // namespace detail

}  // namespace weft
