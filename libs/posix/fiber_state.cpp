#include "libs/posix/fiber_state.hpp"

#include <weft/detail/atomic.hpp>
#include <weft/detail/waist.hpp>
#include <weft/this_fiber.hpp>

namespace weft::posix {

namespace {

// 0 until a fiber opens the first Scope of the process; so that programs without one pay a load.
// Relaxed: a fiber that needs it has stored or loaded it itself.
constinit detail::Atomic<std::uint64_t> state_key{0};

FiberState* find_state(std::uint64_t key) noexcept {
  return static_cast<FiberState*>(detail::find_newest(detail::locals(), key));
}

std::uint64_t key_of_states() noexcept {
  static const std::uint64_t key = detail::new_local_key();
  state_key.store(key, detail::relaxed);
  return key;
}

}  // namespace

FiberState* current_scope() noexcept {
  const std::uint64_t key = state_key.load(detail::relaxed);
  if (key == 0 || !this_fiber::is_fiber()) [[likely]]
    return nullptr;
  FiberState* state = find_state(key);
  return state != nullptr && state->scopes > 0 && state->own_calls == 0 ? state : nullptr;
}

FiberState& fiber_state() {
  const std::uint64_t key = key_of_states();
  if (FiberState* found = find_state(key)) return *found;
  auto* state = new FiberState;
  state->key = key;
  state->destroy = [](detail::LocalNode* node) noexcept { delete static_cast<FiberState*>(node); };
  detail::LocalNode*& first = detail::locals();
  state->next = first;
  first = state;
  return *state;
}

}  // namespace weft::posix
