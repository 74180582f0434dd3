// Stores the caller's context in its list of locals.
#pragma once

#include <weft/detail/atomic.hpp>
#include <weft/detail/local_scope.hpp>

namespace weft {

class Context;

namespace detail {

// Whether any caller of this process has had a context; once set it stays set. Relaxed: a caller
// that has a context has set the flag, or started after the flag was set.
extern Atomic<bool> contexts_are_used;

// Makes `context`, or none if it is null, the caller's context while this object lives. The fiber
// or plain thread that makes the object also destroys it.
class ContextNode : private LocalScope {
 public:
  // Returns the context of `maker`, made at the first call; never null.
  using Make = const Context* (*)(void* maker) noexcept;

  explicit ContextNode(const Context* context) noexcept;
  // Makes the context that `make` returns the caller's context. The caller's own fiber or thread
  // calls `make` whenever code reads the context, so a context that is never read costs nothing.
  ContextNode(Make make, void* maker) noexcept;

  // Returns the innermost context of the caller, or null.
  [[nodiscard]] static const Context* current() noexcept;
  // Returns false if the caller certainly has no context. It costs one load and a branch.
  [[nodiscard]] static bool may_have_one() noexcept { return contexts_are_used.load(relaxed); }

 private:
  const Context* const context_;
  const Make make_ = nullptr;
  void* const maker_ = nullptr;
};

}  // namespace detail

}  // namespace weft
