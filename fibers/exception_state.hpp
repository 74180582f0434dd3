// The thread-local state that belongs to a stack rather than to a thread.
#pragma once

#include <cstring>

#include "fibers/sanitizer.hpp"

namespace weft::fibers {

// The C++ runtime's per-thread exception globals: the stack of caught exceptions and the number of
// uncaught exceptions. Two fibers parked inside catch blocks would rethrow each other's exceptions
// if these 16 bytes were not swapped with the stacks. The layout is fixed by the Itanium C++ ABI.
struct ExceptionState {
  void* caught = nullptr;
  unsigned uncaught = 0;

  // Copies the padding, too, so that each of the two copies at a switch is a single 16-byte move.
  void copy_to(ExceptionState& other) const noexcept {
    std::memcpy(static_cast<void*>(&other), this, sizeof other);
  }
};

// Holds the addresses of a thread's exception globals and its errno. A worker thread finds the two
// addresses once, because compilers treat them as constant and would keep them across a switch.
struct ThreadState {
  ExceptionState* exceptions;
  int* error;
  [[no_unique_address]] SanitizerBetween between;

  [[nodiscard]] static ThreadState of_this_thread() noexcept;
};

}  // namespace weft::fibers
