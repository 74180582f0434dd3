#include "fibers/calls/outermost.hpp"

#include <cxxabi.h>
#include <unwind.h>

#include <exception>

#if defined(__x86_64__) || defined(__aarch64__)

// Answers unwinders that examine the frame of weft_call_as_outermost. Their first phase searches
// for a handler and changes nothing. So code that ends the process in this phase leaves the stack
// intact from the throw.
extern "C" [[gnu::visibility("hidden"), gnu::used]] _Unwind_Reason_Code weft_outermost_personality(
    int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception* exception,
    _Unwind_Context*) {
  if ((actions & _UA_SEARCH_PHASE) != 0) {
    // Makes the exception the current exception for the terminate handler.
    (void)abi::__cxa_begin_catch(exception);
    std::terminate();
  }
  return _URC_CONTINUE_UNWIND;
}

#if defined(__x86_64__)

asm(R"(
  .text
  .p2align 4
  .globl weft_call_as_outermost
  .hidden weft_call_as_outermost
  .type weft_call_as_outermost, @function
weft_call_as_outermost:
  .cfi_startproc
  .cfi_personality 0x1b, weft_outermost_personality
  endbr64
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  .cfi_offset %rbp, -16
  xorl %ebp, %ebp
  movq %rdi, %rax
  movq %rsi, %rdi
  callq *%rax
  popq %rbp
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbp
  retq
  .cfi_endproc
  .size weft_call_as_outermost, . - weft_call_as_outermost
)");

#else

asm(R"(
  .text
  .p2align 4
  .globl weft_call_as_outermost
  .hidden weft_call_as_outermost
  .type weft_call_as_outermost, %function
weft_call_as_outermost:
  .cfi_startproc
  .cfi_personality 0x1b, weft_outermost_personality
  hint #34  // bti c
  stp x29, x30, [sp, #-16]!
  .cfi_adjust_cfa_offset 16
  .cfi_offset x29, -16
  .cfi_offset x30, -8
  mov x29, xzr
  mov x2, x0
  mov x0, x1
  blr x2
  ldp x29, x30, [sp], #16
  .cfi_adjust_cfa_offset -16
  .cfi_restore x29
  .cfi_restore x30
  ret
  .cfi_endproc
  .size weft_call_as_outermost, . - weft_call_as_outermost
)");

#endif

#endif
