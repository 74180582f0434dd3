// Values of pthread keys: within a Scope each fiber has its own values, as a thread does.
#include <limits.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "libs/posix/fiber_state.hpp"
#include "libs/posix/hooks.hpp"

namespace weft::posix {

namespace {

constinit Real<decltype(::pthread_getspecific)> real_get("pthread_getspecific");
constinit Real<decltype(::pthread_setspecific)> real_set("pthread_setspecific");
constinit Real<decltype(::pthread_key_create)> real_create("pthread_key_create");
constinit Real<decltype(::pthread_key_delete)> real_delete("pthread_key_delete");

using Destructor = void (*)(void*);

// Order
//   [key]  create and delete store the generation (release) -> a user of the key loads it
//          (acquire) and sees the destructor.
struct Key {
  detail::Atomic<std::uint32_t> generation{0};     // Odd while the key exists.
  detail::Atomic<Destructor> destructor{nullptr};  // Relaxed: [key] publishes it.
};
constinit std::array<Key, PTHREAD_KEYS_MAX> keys;

std::uint32_t generation_of(pthread_key_t key) noexcept {
  return key < keys.size() ? keys[key].generation.load(detail::acquire) : 0;  // [key]
}

FiberState::KeyValue* find_value(FiberState& state, pthread_key_t key) noexcept {
  const auto found = std::ranges::find(state.values, key,
                                       [](const FiberState::KeyValue& value) { return value.key; });
  return found == state.values.end() ? nullptr : &*found;
}

// Appends a value. The values are consistent whenever an allocator runs: it may use keys itself.
void append_value(FiberState& state, const FiberState::KeyValue& value) {
  std::vector<FiberState::KeyValue> more;
  do {
    more.reserve(state.values.size() + 4);
  } while (more.capacity() <= state.values.size());  // The allocator may have set values.
  more.assign(state.values.begin(), state.values.end());
  more.push_back(value);
  state.values.swap(more);
}

int set_value(FiberState& state, pthread_key_t key, const void* value) noexcept {
  const std::uint32_t generation = generation_of(key);
  if (generation % 2 == 0) return EINVAL;
  if (FiberState::KeyValue* old = find_value(state, key)) {
    *old = {key, generation, value};
    return 0;
  }
  try {
    append_value(state, {key, generation, value});
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

}  // namespace

// A destructor may set values again. As on a thread, the number of rounds is limited.
void destroy_key_values(FiberState& state) noexcept {
  for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS && !state.values.empty(); ++round) {
    for (const auto& value : std::exchange(state.values, {})) {
      if (value.value == nullptr || generation_of(value.key) != value.generation) continue;
      const Destructor destroy = keys[value.key].destructor.load(detail::relaxed);
      if (destroy != nullptr) destroy(const_cast<void*>(value.value));
    }
  }
  state.values.clear();
}

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

WEFT_POSIX_EXPORT void* pthread_getspecific(pthread_key_t key) noexcept {
  FiberState* state = current_scope();
  if (state == nullptr) return real_get(key);
  const FiberState::KeyValue* value = find_value(*state, key);
  if (value == nullptr || value->generation != generation_of(key)) return nullptr;
  return const_cast<void*>(value->value);
}

WEFT_POSIX_EXPORT int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
  FiberState* state = current_scope();
  return state == nullptr ? real_set(key, value) : set_value(*state, key, value);
}

WEFT_POSIX_EXPORT int pthread_key_create(pthread_key_t* key, Destructor destructor) noexcept {
  const int error = real_create(key, destructor);
  if (error != 0 || *key >= keys.size()) return error;
  Key& entry = keys[*key];
  entry.destructor.store(destructor, weft::detail::relaxed);
  // Relaxed: the C library gives a key to one caller at a time.
  const std::uint32_t before = entry.generation.load(weft::detail::relaxed);
  entry.generation.store((before + 1) | 1, weft::detail::release);  // [key]
  return 0;
}

WEFT_POSIX_EXPORT int pthread_key_delete(pthread_key_t key) noexcept {
  // This precedes the delete, after which the C library may give the number to another caller.
  const std::uint32_t before = generation_of(key);
  if (before % 2 != 0) keys[key].generation.store(before + 1, weft::detail::release);  // [key]
  return real_delete(key);
}

}  // extern "C"

WEFT_POSIX_HOOK(pthread_getspecific);
WEFT_POSIX_HOOK(pthread_setspecific);
WEFT_POSIX_HOOK(pthread_key_create);
WEFT_POSIX_HOOK(pthread_key_delete);

namespace weft::posix {

std::span<const Hook> key_hooks() noexcept {
  static const std::array hooks{
      WEFT_POSIX_ENTRY(pthread_getspecific), WEFT_POSIX_ENTRY(pthread_setspecific),
      WEFT_POSIX_ENTRY(pthread_key_create), WEFT_POSIX_ENTRY(pthread_key_delete)};
  return hooks;
}

}  // namespace weft::posix
