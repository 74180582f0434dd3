// What a fiber that has opened a Scope has of its own.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/local_node.hpp>
#include <weft/detail/waist.hpp>

namespace weft::posix {

// Lives from the fiber's first Scope to the fiber's end. Its own fiber's alone, except what says
// otherwise.
struct FiberState : detail::LocalNode {
  struct KeyValue {
    pthread_key_t key;
    std::uint32_t generation;  // Of the key: one that was deleted and made anew has no value here.
    const void* value;
  };
  unsigned scopes = 0;
  unsigned own_calls = 0;  // Above 0: the calls are weft's, and go straight to the C library.
  // The number of the socket to which the fiber has sent last, until it receives or polls; -1:
  // none. A receive from it most likely comes before the answer. A wrong guess costs time alone.
  int asked = -1;
  std::vector<KeyValue> values;

  const fibers::Fiber* fiber = nullptr;
  // Guarded by the lock of its shard in the table. Unchecked: no member leads to that lock.
  FiberState* next_state = nullptr;

  // Whether a call that keeps the worker now would be one that this library does not see. Monitors
  // read it. Relaxed: it may be stale.
  [[nodiscard]] bool is_sampled() const noexcept { return is_sampled_.load(detail::relaxed); }
  void set_sampled(bool is_sampled) noexcept { is_sampled_.store(is_sampled, detail::relaxed); }

 private:
  detail::Atomic<bool> is_sampled_{false};
};

// Of the calling fiber, if it is in a Scope and does not wait in a call of this library. Null
// otherwise, and on plain threads.
[[nodiscard]] FiberState* current_scope() noexcept;
// Made at the first call. On fibers only. Throws std::bad_alloc.
[[nodiscard]] FiberState& fiber_state();
// FiberState::is_sampled() of a fiber, which may have ended; false if it has no state.
[[nodiscard]] bool is_sampled(const fibers::Fiber* fiber) noexcept;
// In the child of a fork: a thread that is gone may hold a lock of the table.
void forget_states() noexcept;
// Destroys its values, as a thread that ends destroys its own.
void destroy_key_values(FiberState& state) noexcept;

// Calls of the C library in its scope are weft's.
class OwnCalls {
 public:
  explicit OwnCalls(FiberState& state) noexcept : state_(state) { ++state_.own_calls; }
  ~OwnCalls() { --state_.own_calls; }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

 private:
  FiberState& state_;
};

}  // namespace weft::posix
