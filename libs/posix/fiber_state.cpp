#include "libs/posix/fiber_state.hpp"

#include <weft/detail/spin_lock.hpp>
#include <weft/this_fiber.hpp>

#include "libs/posix/locks.hpp"
#include "libs/posix/shards.hpp"

namespace weft::posix {

namespace {

// 0 until a fiber opens the first Scope of the process, so programs without a Scope pay for one
// load. Relaxed: a fiber that needs the key has stored or loaded it itself.
constinit detail::Atomic<std::uint64_t> state_key{0};

// Maps each fiber to its state. Monitors look up states here.
struct Shard {
  detail::SpinLock lock;
  FiberState* first WEFT_GUARDED_BY(lock) = nullptr;
};
constinit Shards<Shard> shards;

void add(FiberState& state) noexcept {
  Shard& shard = shards.of(state.fiber);
  const detail::SpinGuard guard(shard.lock);
  state.next_state = shard.first;
  shard.first = &state;
}

// The state is absent if the child of a fork has emptied the table.
void remove(FiberState& state) noexcept {
  Shard& shard = shards.of(state.fiber);
  const detail::SpinGuard guard(shard.lock);
  FiberState** place = &shard.first;
  while (*place != nullptr && *place != &state) place = &(*place)->next_state;
  if (*place != nullptr) *place = state.next_state;
}

FiberState* find_state(std::uint64_t key) noexcept {
  return static_cast<FiberState*>(detail::find_newest(detail::locals(), key));
}

std::uint64_t key_of_states() noexcept {
  state_key.store(detail::kPosixKey, detail::relaxed);
  return detail::kPosixKey;
}

}  // namespace

FiberState* find_scope() noexcept {
  const std::uint64_t key = state_key.load(detail::relaxed);
  if (key == 0 || !this_fiber::is_fiber()) [[likely]]
    return nullptr;
  FiberState* state = find_state(key);
  return state != nullptr && state->scopes > 0 && state->own_calls == 0 ? state : nullptr;
}

FiberState* current_scope() noexcept {
  FiberState* state = find_scope();
#ifndef WEFT_POSIX_WITHOUT_HOOKS
  // The thread may have run other fibers since, during a park by a call to weft.
  if (state != nullptr) see_system_calls_if_on(true);
#endif
  return state;
}

FiberState& fiber_state() {
  const std::uint64_t key = key_of_states();
  if (FiberState* found = find_state(key)) return *found;
  auto* state = new FiberState;
  state->key = key;
  state->destroy = [](detail::LocalNode* node) noexcept {
    auto* ended = static_cast<FiberState*>(node);
    remove(*ended);
#ifndef WEFT_POSIX_WITHOUT_HOOKS
    // A lock that the fiber still holds stays locked. The thread continues, and could not release
    // it.
    forget_held_locks();
#endif
    delete ended;
  };
  detail::LocalNode*& first = detail::locals();
  state->next = first;
  first = state;
  state->fiber = detail::current().fiber();
  add(*state);
  return *state;
}

bool is_sampled(const fibers::Fiber* fiber) noexcept {
  Shard& shard = shards.of(fiber);
  const detail::SpinGuard guard(shard.lock);
  for (const FiberState* state = shard.first; state != nullptr; state = state->next_state) {
    if (state->fiber == fiber) return state->is_sampled();
  }
  return false;
}

void forget_states() noexcept { shards.forget(); }

}  // namespace weft::posix
