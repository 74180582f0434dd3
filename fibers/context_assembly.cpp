// Visits to the stacks of parked fibers.
#include "fibers/context.hpp"

namespace {

// The words at the stack pointer on entry to weft_visit. The assembly depends on this layout.
struct alignas(16) Visit {
  weft::fibers::Arrival (*visitor)(weft::fibers::Arrival);
  weft::fibers::Context visited;
  weft::fibers::SavedContext start;
};

}  // namespace

// Calls the visitor, and resumes the visited context with what the visitor returns. Unwinders see
// the visited context as the caller. The three .cfi_escape directives state that the caller's stack
// pointer, resume address and frame pointer are at the place to which `visited` points.
extern "C" [[gnu::visibility("hidden")]] void weft_visit() noexcept;

#if defined(__x86_64__)

asm(R"(
  .text
  .p2align 4
  .globl weft_visit
  .hidden weft_visit
  .type weft_visit, @function
weft_visit:
  .cfi_startproc
  # CFA = **(rsp + 8); rip is at *(rsp + 8) + 8, and rbp at *(rsp + 8) + 16.
  .cfi_escape 0x0f, 4, 0x77, 8, 0x06, 0x06
  .cfi_escape 0x10, 16, 5, 0x77, 8, 0x06, 0x23, 8
  .cfi_escape 0x10, 6, 5, 0x77, 8, 0x06, 0x23, 16
  endbr64
  callq *(%rsp)
  movq 8(%rsp), %rcx
  movq %rax, %rdi
  movq %rdx, %rsi
  movq 16(%rcx), %rbp
  movq (%rcx), %rsp
  jmpq *8(%rcx)
  .cfi_endproc
  .size weft_visit, . - weft_visit
)");

#else

asm(R"(
  .text
  .p2align 4
  .globl weft_visit
  .hidden weft_visit
  .type weft_visit, %function
weft_visit:
  .cfi_startproc
  // CFA = **(sp + 8); the return address is at *(sp + 8) + 8, and x29 at *(sp + 8) + 16.
  .cfi_escape 0x0f, 4, 0x8f, 8, 0x06, 0x06
  .cfi_escape 0x10, 30, 5, 0x8f, 8, 0x06, 0x23, 8
  .cfi_escape 0x10, 29, 5, 0x8f, 8, 0x06, 0x23, 16
  hint #34  // bti c
  ldr x2, [sp]
  blr x2
  ldr x2, [sp, #8]
  ldp x3, x16, [x2]
  ldr x29, [x2, #16]
  mov sp, x3
  br x16
  .cfi_endproc
  .size weft_visit, . - weft_visit
)");

#endif

namespace weft::fibers {

Arrival jump_on_top(Context to, void* message, Arrival (*visitor)(Arrival)) noexcept {
  const auto end = reinterpret_cast<std::uintptr_t>(to->stack_pointer) - kRedZone;
  auto* visit = reinterpret_cast<Visit*>((end & ~std::uintptr_t{15}) - sizeof(Visit));
  *visit = {visitor, to, {visit, reinterpret_cast<void*>(&weft_visit), to->frame_pointer}};
  return jump(&visit->start, message);
}

}  // namespace weft::fibers
