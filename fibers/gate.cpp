// The passage through a gate.
#include "fibers/gate.hpp"

#include <cstddef>

// Arrived at by a jump, with the gate in the register of the jump's `to`. Nothing is pushed, and
// the two registers of what arrives are left alone. Waits in nanosleep(2): a gate is closed for a
// system call of some microseconds, and who has closed it may need this processor.
// To unwinders it looks as if the parked call had called it: the .cfi_escape say that the stack
// pointer, resume address and frame pointer are where the gate's way on points to.
extern "C" [[gnu::visibility("hidden")]] void weft_pass_gate() noexcept;

#if defined(__x86_64__)

asm(R"(
  .section .rodata
  .balign 8
.Lweft_gate_pause:  # 20 us, a timespec
  .quad 0, 20000
  .text
  .p2align 4
  .globl weft_pass_gate
  .hidden weft_pass_gate
  .type weft_pass_gate, @function
weft_pass_gate:
  .cfi_startproc
  # CFA = **(rdx + 24); rip is at *(rdx + 24) + 8, and rbp at *(rdx + 24) + 16.
  .cfi_escape 0x0f, 4, 0x71, 24, 0x06, 0x06
  .cfi_escape 0x10, 16, 5, 0x71, 24, 0x06, 0x23, 8
  .cfi_escape 0x10, 6, 5, 0x71, 24, 0x06, 0x23, 16
  endbr64
  xorl %r8d, %r8d
1:
  movl $1, %eax
  lock cmpxchgl %r8d, 32(%rdx)
  je 2f
  movq %rdi, %r9
  movq %rsi, %r10
  leaq .Lweft_gate_pause(%rip), %rdi
  xorl %esi, %esi
  movl $35, %eax
  syscall
  movq %r9, %rdi
  movq %r10, %rsi
  jmp 1b
2:
  movq 24(%rdx), %rcx
  movq 16(%rcx), %rbp
  movq (%rcx), %rsp
  jmpq *8(%rcx)
  .cfi_endproc
  .size weft_pass_gate, . - weft_pass_gate
)");

#else

asm(R"(
  .section .rodata
  .balign 8
.Lweft_gate_pause:  // 20 us, a timespec
  .quad 0, 20000
  .text
  .p2align 4
  .globl weft_pass_gate
  .hidden weft_pass_gate
  .type weft_pass_gate, %function
weft_pass_gate:
  .cfi_startproc
  // CFA = **(x2 + 24); the return address is at *(x2 + 24) + 8, and x29 at *(x2 + 24) + 16.
  .cfi_escape 0x0f, 4, 0x72, 24, 0x06, 0x06
  .cfi_escape 0x10, 30, 5, 0x72, 24, 0x06, 0x23, 8
  .cfi_escape 0x10, 29, 5, 0x72, 24, 0x06, 0x23, 16
  hint #34  // bti c
  add x3, x2, #32
1:
  ldaxr w4, [x3]
  cmp w4, #1
  b.ne 3f
  stxr w5, wzr, [x3]
  cbnz w5, 1b
  ldr x6, [x2, #24]
  ldp x4, x16, [x6]
  ldr x29, [x6, #16]
  mov sp, x4
  br x16
3:
  clrex
  mov x7, x0
  mov x9, x1
  adrp x0, .Lweft_gate_pause
  add x0, x0, :lo12:.Lweft_gate_pause
  mov x1, xzr
  mov x8, #101
  svc #0
  mov x0, x7
  mov x1, x9
  b 1b
  .cfi_endproc
  .size weft_pass_gate, . - weft_pass_gate
)");

#endif

namespace weft::fibers {

void Gate::lead_to(Context way_on, char* lobby) noexcept {
  static_assert(sizeof(SavedContext) == 24 && offsetof(Gate, way_on_) == 24 &&
                offsetof(Gate, state_) == 32);
  entrance_ = {lobby - kRedZone, reinterpret_cast<void*>(&weft_pass_gate), nullptr};
  way_on_ = way_on;
  state_.store(kOpen, detail::relaxed);  // Relaxed: whoever hangs it publishes it.
}

Context behind_gate(Context saved) noexcept {
  if (saved == nullptr || saved->resume != reinterpret_cast<void*>(&weft_pass_gate)) return saved;
  return reinterpret_cast<const Gate*>(saved)->way_on_;
}

}  // namespace weft::fibers
