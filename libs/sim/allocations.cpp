// The allocator of programs that link the simulation. It calls the C library's allocator, but
// some calls fail. Its functions are weak, so that a program may define its own allocator.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <weft/detail/atomic.hpp>

#include "libs/sim/faults.hpp"

namespace weft::sim {

namespace {

using Hook = bool (*)() noexcept;

// Relaxed: the simulation's thread sets the hook, which affects only its own allocations.
constinit detail::Atomic<Hook> hook{nullptr};
thread_local constinit bool was_called = false;

void* allocate(std::size_t bytes) noexcept {
  was_called = true;
  const Hook fails = hook.load(detail::relaxed);
  if (fails != nullptr && fails()) return nullptr;
  return std::malloc(std::max<std::size_t>(bytes, 1));
}

void* allocate_or_throw(std::size_t bytes) {
  if (void* memory = allocate(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

[[gnu::noinline]] bool has_own_allocator() noexcept {
  was_called = false;
  ::operator delete(::operator new(1, std::nothrow), std::nothrow);
  return was_called;
}

void set_allocation_hook(Hook fails) noexcept { hook.store(fails, detail::relaxed); }

}  // namespace weft::sim

[[gnu::weak]] void* operator new(std::size_t bytes) { return weft::sim::allocate_or_throw(bytes); }
[[gnu::weak]] void* operator new[](std::size_t bytes) {
  return weft::sim::allocate_or_throw(bytes);
}
[[gnu::weak]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return weft::sim::allocate(bytes);
}
[[gnu::weak]] void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return weft::sim::allocate(bytes);
}
[[gnu::weak]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::weak]] void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
