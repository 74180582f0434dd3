#include "fibers/calls/backtrace.hpp"

#include <unwind.h>

#include <algorithm>

namespace weft::fibers {

namespace {

// An unwinder needs at most this many bytes of stack.
constexpr std::ptrdiff_t kUnwinderBytes = 8 << 10;

_Unwind_Reason_Code note_frame(_Unwind_Context* context, void* argument) {
  auto& trace = *static_cast<Backtrace*>(argument);
  const auto address = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  if (address == nullptr || trace.count == Backtrace::kMostFrames) return _URC_END_OF_STACK;
  trace.frames[trace.count++] = address;
  return _URC_NO_REASON;
}

// Runs on the parked stack, as if the parked call had called it. The jump back saves a new context
// of the stack. A worker that resumes the fiber later arrives here; this function then returns to
// the parked call.
Arrival visit(Arrival arrival) {
  (void)_Unwind_Backtrace(&note_frame, arrival.data);
  return jump(arrival.fctx, nullptr);
}

}  // namespace

Backtrace calls_here(const Stack& here) noexcept {
  Backtrace trace;
  if (kSanitized || room_left(here) < kUnwinderBytes) return trace;
  (void)_Unwind_Backtrace(&note_frame, &trace);
  // Removes the frame of this function.
  if (trace.count > 0)
    std::copy(trace.frames.begin() + 1, trace.frames.end(), trace.frames.begin());
  if (trace.count > 0) --trace.count;
  return trace;
}

Backtrace backtrace_of(Stack& parked) noexcept {
  Backtrace trace;
  // Relaxed: no other thread uses the stack now.
  const Context context = parked.context.load(detail::relaxed);
  const char* const end = end_of(context);
  // In a copy of the process (observe/stack_photo.hpp), a fiber that was about to park has an old
  // context, which may contain any address.
  const bool is_in_stack = end < reinterpret_cast<const char*>(&parked);
  if (kSanitized || !is_in_stack || end - parked.lowest < kUnwinderBytes) return trace;
  parked.context.store(jump_on_top(context, &trace, &visit).fctx, detail::relaxed);
  return trace;
}

}  // namespace weft::fibers
