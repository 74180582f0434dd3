// For the files that stand in front of the C library: whether a call is to fail, and the call
// itself.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#include "tests/faults/faults.hpp"

namespace weft::test {

// The error with which this call is to fail; 0: it does not.
int fault_of(Call call) noexcept;
// One of the usual errors of its kind, once in `one_in` calls; 0: the call does not fail. The
// call's number and the test's seed decide.
int error_by_chance(Call call, std::uint64_t number, std::uint64_t one_in) noexcept;
// Whether this call is to fail; sets errno then.
bool fails(Call call) noexcept;
// How many bytes a transfer may move; 0 when it is to fail.
std::size_t allowance(Call call, std::size_t wanted) noexcept;

// The function of the C library. Looked up each time: this is not for speed.
template <class Function>
Function* real(const char* name) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// For libraries that may be told where to get memory from: as malloc, realloc, free.
void* allocate_below(Call call, std::size_t bytes) noexcept;
void* resize_below(Call call, void* memory, std::size_t bytes) noexcept;
void release_below(void* memory) noexcept;
// Counts answers that getaddrinfo has given, or freeaddrinfo has taken back.
void count_answers(int difference) noexcept;

// Does what the kernel does besides: a connection that is broken is so for both sides. A caller
// that would wait for an edge after EAGAIN, or after a partial transfer, gets one, as if something
// came later; registering anew makes the kernel report what is there.
void follow_up(int descriptor, long moved) noexcept;

}  // namespace weft::test
