// Implements the switch in a few instructions, for x86-64 and aarch64; see context.hpp.
//
// The assembly statement saves only three registers. It declares all other registers as destroyed,
// so the compiler keeps the values that it still needs in the frame, where they often are already.
// Two of the saved registers are the stack pointer and the frame pointer, which cannot be declared
// as destroyed. The third is the resume address: the next instruction after the jump, in the same
// function. So no unpaired call or return misleads the processor's return predictor. Shadow stacks
// (CET's SHSTK, aarch64's GCS) are not supported, because a switch would have to change them, too.
// Landing pads (IBT, BTI) are set if the compiler's options require them.
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "no assembly for this processor: build with -Dcontext=boost"
#endif

namespace weft::fibers {

// A SavedContext is in the frame of the jump, so at most a red zone is below it. On a new stack of
// x86-64, it is itself in the red zone. The assembly and tools/gdb/weft.py depend on the layout.
struct SavedContext {
  void* stack_pointer;
  void* resume;
  void* frame_pointer;
};
using Context = SavedContext*;

// Functions receive these two pointers in registers, where a jump leaves them. So a jump enters the
// entry function of a fresh stack directly.
struct Arrival {
  Context fctx;
  void* data;
};

[[nodiscard]] inline Context make_context(void* top, std::size_t /*size*/,
                                          void (*entry)(Arrival)) noexcept {
  // The entry finds an aligned stack and, on x86-64, a return address, as after a call. The return
  // address and the frame pointer are zero, so unwinders stop there.
  struct Start {
    SavedContext saved;
    void* return_address;
  };
  const auto end = reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{15};
  static_assert(sizeof(Start) % 16 == 0);
  auto* start = reinterpret_cast<Start*>(end - sizeof(Start));
#ifdef __x86_64__
  // The jump reads the saved registers in the red zone of the entry; the entry's frames then
  // overwrite them. So a fiber's frames begin at the top of the stack, which saves memory where
  // many fibers are parked.
  void* const stack_pointer = &start->return_address;
#else
  void* const stack_pointer = start;
#endif
  start->return_address = nullptr;
  start->saved = {stack_pointer, reinterpret_cast<void*>(entry), nullptr};
  return &start->saved;
}

#if defined(__x86_64__)

// Always inlined, so that the compiler saves exactly the values that this caller needs, and only
// once.
[[gnu::always_inline]] inline Arrival jump(Context to, void* message,
                                           SavedContext& saved) noexcept {
  Context left = &saved;
  asm volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rsp, (%%rdi)\n\t"
      "movq %%rax, 8(%%rdi)\n\t"
      "movq %%rbp, 16(%%rdi)\n\t"
      // From this instruction on, a signal's frame is on the other stack, and cannot overwrite the
      // saved context.
      "movq (%%rdx), %%rsp\n\t"
      "movq 16(%%rdx), %%rbp\n\t"
      "jmpq *8(%%rdx)\n"
      "1:\n\t"
#if defined(__CET__) && (__CET__ & 1)
      "endbr64\n\t"
#endif
      : "+D"(left), "+S"(message), "+d"(to)
      :
      : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory",
        "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "mm0", "mm1", "mm2",
        "mm3", "mm4", "mm5", "mm6", "mm7", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
        "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#ifdef __AVX512F__
        ,
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6",
        "k7"
#endif
  );
  return {left, message};
}

#else

[[gnu::always_inline]] inline Arrival jump(Context to, void* message,
                                           SavedContext& saved) noexcept {
  register Context left asm("x0") = &saved;
  register void* data asm("x1") = message;
  register Context next asm("x2") = to;
  asm volatile(
      "adr x3, 1f\n\t"
      "mov x4, sp\n\t"
      "stp x4, x3, [x0]\n\t"
      "str x29, [x0, #16]\n\t"
      "ldp x4, x16, [x2]\n\t"
      "ldr x29, [x2, #16]\n\t"
      "mov sp, x4\n\t"
      "mov x30, xzr\n\t"  // On a fresh stack the entry has no caller.
      "br x16\n"          // Jumps by x16, which all landing pads accept.
      "1:\n\t"
#ifdef __ARM_FEATURE_BTI_DEFAULT
      "hint #36\n\t"  // bti j
#endif
      : "+r"(left), "+r"(data), "+r"(next)
      :
      : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
        "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30",
        "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
        "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
        "v25", "v26", "v27", "v28", "v29", "v30", "v31"
#ifdef __ARM_FEATURE_SVE
        ,
        "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13",
        "p14", "p15"
#endif
  );
  return {left, data};
}

#endif

[[gnu::always_inline]] inline Arrival jump(Context to, void* message) noexcept {
  SavedContext saved;
  return jump(to, message, saved);
}

Arrival jump_on_top(Context to, void* message, Arrival (*visitor)(Arrival)) noexcept;

[[nodiscard]] inline const char* end_of(Context saved) noexcept {
  return static_cast<const char*>(saved->stack_pointer);
}

}  // namespace weft::fibers
