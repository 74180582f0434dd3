// Keeps a context alive for a fiber that may outlive the scope that started the fiber.
#pragma once

#include <cstdint>
#include <utility>
#include <weft/detail/atomic.hpp>

namespace weft {

class Context;

namespace detail {

// Counts the references to a ContextCore. Its Context, children, timer, fibers and calls hold them.
// The count is in this base class, so that programs without contexts need not link ContextCore.
// Invariant: references_ counts the ContextShares; the last share destroys the core. Not asserted,
// because the core has no list of its shares.
// Order
//   [refs]  leave() decrements the count (acq_rel) -> the last leave() decrements it (acq_rel): it
//           then sees all uses of the core by other shares, and destroys the core.
class SharedContext {
 public:
  SharedContext(const SharedContext&) = delete;
  SharedContext& operator=(const SharedContext&) = delete;

  // Returns the shared context, which its owner may already have ended.
  [[nodiscard]] const Context& context() const noexcept { return context_; }

 protected:
  using Destroy = void (*)(SharedContext& last) noexcept;
  SharedContext(const Context& context, Destroy destroy) noexcept
      : context_(context), destroy_(destroy) {}
  ~SharedContext() = default;

 private:
  friend class ContextShare;

  const Context& context_;
  const Destroy destroy_;
  Atomic<std::uint32_t> references_{0};
};

// Holds one reference to a SharedContext, or none.
class ContextShare {
 public:
  ContextShare() noexcept = default;
  // Relaxed: the caller already has a reference, or has just created the core.
  explicit ContextShare(SharedContext& core) noexcept : core_(&core) {
    core.references_.fetch_add(1, relaxed);
  }
  // Returns a share of the caller's context, or an empty share if the caller has no context.
  [[nodiscard]] static ContextShare of_caller() noexcept;
  ContextShare(ContextShare&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  ContextShare& operator=(ContextShare&& other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~ContextShare() { reset(); }

  void reset() noexcept {
    if (SharedContext* const last = leave()) last->destroy_(*last);
  }
  // Releases the reference. If it was the last reference, returns the core, which the caller must
  // destroy; otherwise returns null.
  [[nodiscard]] SharedContext* leave() noexcept {
    SharedContext* const core = std::exchange(core_, nullptr);
    const bool is_last = core != nullptr && core->references_.fetch_sub(1, acq_rel) == 1;  // [refs]
    return is_last ? core : nullptr;
  }
  [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }
  [[nodiscard]] SharedContext* core() const noexcept { return core_; }
  // Returns the shared context. The share must not be empty.
  [[nodiscard]] const Context* context() const noexcept { return &core_->context(); }

 private:
  SharedContext* core_ = nullptr;
};

}  // namespace detail

}  // namespace weft
