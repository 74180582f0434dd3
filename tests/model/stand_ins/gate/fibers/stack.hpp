// Stands in for fibers/stack.hpp: what switches and gates know of a stack.
#pragma once

#include <cstdint>
#include <weft/detail/atomic.hpp>

#include "fibers/context.hpp"

namespace weft::fibers {

struct Fiber;

struct SanitizerBetween {};
struct SanitizerStack {
  void leave_for(SanitizerStack& /*to*/, const SanitizerBetween& /*between*/) noexcept {}
  void arrive_from(SanitizerStack& /*from*/) noexcept {}
  void go_on() noexcept {}
  static bool watched_by_valgrind() noexcept { return false; }
};
inline constexpr bool kSanitized = false;

struct ExceptionState {
  void copy_to(ExceptionState& /*other*/) const noexcept {}
};
struct ThreadState {
  ExceptionState* exceptions;
  int* error;
  SanitizerBetween between;
};

struct Stack {
  detail::Atomic<Context> context{nullptr};
  Fiber* fiber = nullptr;
  char* lowest = nullptr;
  ExceptionState exceptions;
  int saved_errno = 0;
  SanitizerStack sanitizer;
  detail::Atomic<std::uint64_t> fiber_id{0};
};

}  // namespace weft::fibers
