// For the files that stand in front of the C library: whether a call is to fail, and the call
// itself.
#pragma once

#include <dlfcn.h>

#include <cstddef>

#include "tests/faults/faults.hpp"

namespace weft::test {

// The error with which this call is to fail; 0: it does not.
int fault_of(Call call) noexcept;
// Whether this call is to fail; sets errno then.
bool fails(Call call) noexcept;
// How many bytes a transfer may move; 0 when it is to fail.
std::size_t allowance(Call call, std::size_t wanted) noexcept;

// The function of the C library. Looked up each time: this is not for speed.
template <class Function>
Function* real(const char* name) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// A caller that would wait for an edge after EAGAIN, or after a transfer that was not whole, must
// be told of one: where the kernel does that, something comes later. Registering anew makes it say
// what is there.
void promise_edge(int descriptor) noexcept;

}  // namespace weft::test
