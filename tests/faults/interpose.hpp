// For the files that replace functions of the C library: decides whether a call must fail, and
// finds the original function.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#include "tests/faults/faults.hpp"

namespace weft::test {

// Returns the error with which this call must fail, or 0.
int fault_of(Call call) noexcept;
// Returns one of the usual errors of this kind of call, once in `one_in` calls; otherwise 0. The
// call's number and the test's seed decide.
int error_by_chance(Call call, std::uint64_t number, std::uint64_t one_in) noexcept;
// Returns whether this call must fail, and then sets errno.
bool fails(Call call) noexcept;
// Returns how many bytes a transfer may move, or 0 if it must fail.
std::size_t allowance(Call call, std::size_t wanted) noexcept;

// Returns the function of the C library. Looks it up each time, because speed does not matter here.
template <class Function>
Function* real(const char* name) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Replace malloc, realloc and free, for libraries that accept other allocation functions.
void* allocate_below(Call call, std::size_t bytes) noexcept;
void* resize_below(Call call, void* memory, std::size_t bytes) noexcept;
void release_below(void* memory) noexcept;
// Counts answers that getaddrinfo has returned, or that freeaddrinfo has freed.
void count_answers(int difference) noexcept;

// Imitates the kernel's further effects: a broken connection is broken for both sides. After EAGAIN
// or a partial transfer, registers the descriptor again. The kernel then reports its state, as if
// data had come later.
void follow_up(int descriptor, long moved) noexcept;

}  // namespace weft::test
