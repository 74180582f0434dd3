// The state of a fiber that has opened a Scope.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <memory>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/local_node.hpp>
#include <weft/detail/waist.hpp>

#include "libs/posix/carried_locks.hpp"
#include "libs/posix/system_calls.hpp"

namespace weft::posix {

// Lives from the fiber's first Scope to the fiber's end. Only the fiber uses it, except where a
// comment names another user.
struct FiberState : detail::LocalNode {
  struct KeyValue {
    pthread_key_t key;
    std::uint32_t generation;  // Differs if the key was deleted and created again.
    const void* value;
  };
  unsigned scopes = 0;
  unsigned own_calls = 0;     // Above 0: weft makes the calls, which go straight to the C library.
  unsigned carry_scopes = 0;  // Above 0: the fiber takes its locks into a park.
  std::unique_ptr<CarriedLocks> carried;  // Null until carry_scopes is above 0.
  // The socket to which the fiber sent last, or where its last receive found nothing, until it
  // receives or polls; -1: none. A receive from that socket most likely precedes the answer. A
  // wrong guess costs only time.
  int asked = -1;
  std::vector<KeyValue> values;
  // The results of gethostbyname() and similar calls, which otherwise belong to a thread or to the
  // process.
  std::vector<std::vector<char>> found_names;

  const fibers::Fiber* fiber = nullptr;
  // Guarded by the lock of its shard in the table. Not annotated, because no member leads to that
  // lock.
  FiberState* next_state = nullptr;

  // Returns whether the worker is in a blocking call that this library does not intercept. Monitors
  // call it. Relaxed: the value may be stale.
  [[nodiscard]] bool is_sampled() const noexcept { return is_sampled_.load(detail::relaxed); }
  void set_sampled(bool is_sampled) noexcept { is_sampled_.store(is_sampled, detail::relaxed); }

 private:
  detail::Atomic<bool> is_sampled_{false};
};

// Returns the state of the calling fiber if the fiber is in a Scope and outside of weft's own
// calls. Returns null otherwise, and on plain threads.
[[nodiscard]] FiberState* current_scope() noexcept;
// Returns the same state, but does not change the diagnostic mode of the thread.
[[nodiscard]] FiberState* find_scope() noexcept;
// Returns the state of the calling fiber, which the first call creates. Only fibers may call it.
// Throws std::bad_alloc.
[[nodiscard]] FiberState& fiber_state();
// Returns FiberState::is_sampled() of a fiber, or false if it has no state. The fiber may have
// ended.
[[nodiscard]] bool is_sampled(const fibers::Fiber* fiber) noexcept;
// Empties the table in the child of a fork: a thread that fork() did not copy may hold a lock of
// it.
void forget_states() noexcept;
// Destroys the values of the keys, as a thread does when it ends.
void destroy_key_values(FiberState& state) noexcept;

// During its lifetime, weft itself makes the fiber's calls to the C library, and may park the
// fiber.
class OwnCalls {
 public:
  // The fiber itself releases the lock `released` before it parks; null: none.
  explicit OwnCalls(FiberState& state, const void* released = nullptr) noexcept : state_(state) {
    if (++state_.own_calls > 1) return;
    see_system_calls_if_on(false);
    if (state_.carry_scopes > 0) state_.carried->put_down(released);
  }
  ~OwnCalls() {
    if (--state_.own_calls > 0) return;
    if (state_.carry_scopes > 0) state_.carried->pick_up();
    if (state_.scopes > 0) see_system_calls_if_on(true);
  }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

 private:
  FiberState& state_;
};

}  // namespace weft::posix
