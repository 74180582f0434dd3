#include "fibers/calls/call_walk.hpp"

#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/read_memory.hpp"
#include "fibers/calls/unwind_table.hpp"
#include "fibers/stack.hpp"

namespace weft::fibers {

namespace {

using Word = std::uintptr_t;
using Value = std::optional<Word>;

// The bits of a pointer that form its address. The mask clears the bits that authenticate pointers
// on aarch64.
constexpr Word kAddressBits = (Word{1} << 48) - 1;

class Walk {
 public:
  explicit Walk(const ThreadImage& image) noexcept
      : image_(image),
        registers_(image.registers),
        begin_(image.begin),
        end_(begin_ + image.count * sizeof(Word)) {}

  Backtrace run() noexcept {
    Backtrace trace;
    // A report prints the instruction before each address. The innermost frame thus gets the
    // address after its current instruction, like a call.
    add(trace, registers_.program_counter + 1);
    bool is_call = false;
    while (trace.count < Backtrace::kMostFrames) {
      const Step step = step_by_table(is_call);
      if (step == Step::end) break;
      if (step == Step::lost && !scan()) break;
      is_call = true;
      add(trace, registers_.program_counter);
    }
    return trace;
  }

 private:
  enum class Step : std::uint8_t { done, end, lost };

  static void add(Backtrace& trace, Word address) noexcept {
    trace.frames[trace.count++] = reinterpret_cast<const void*>(address);
  }
  [[nodiscard]] Value word_at(Word address) const noexcept {
    if (address < begin_ || address >= end_ || (address - begin_) % sizeof(Word) != 0) return {};
    return image_.words[(address - begin_) / sizeof(Word)];
  }
  [[nodiscard]] Word stack_pointer() const noexcept { return registers_.values[kStackRegister]; }

  Step step_by_table(bool is_call) noexcept {
    UnwindTable table;
    const Word address = registers_.program_counter - (is_call ? 1 : 0);
    if (!find_table(address, table)) return Step::lost;
    UnwindRules rules;
    if (!rules_at(address, table, rules)) return Step::lost;
    if (rules.ends_here) return Step::end;
    const Value frame = rules.by_expression ? evaluate(rules.expression) : frame_by_register(rules);
    // A caller's frame must be higher on the stack; otherwise the image is invalid.
    if (!frame || *frame < stack_pointer() || *frame > end_) return Step::lost;
    Registers caller = registers_;
    for (std::size_t number = 0; number < kRegisters; ++number) {
      apply(rules.registers[number], number, *frame, caller);
    }
    caller.set(kStackRegister, *frame);
    const bool found = caller.knows(table.return_column);
    const bool same = rules.registers[table.return_column].kind == UnwindRule::Kind::same;
    // Only a leaf function may have its return address in a register.
    if (!found || (same && is_call) || table.is_signal_frame) return Step::lost;
    caller.program_counter = caller.values[table.return_column] & kAddressBits;
    if (caller.program_counter == 0) return Step::end;
    registers_ = caller;
    return Step::done;
  }

  [[nodiscard]] Value frame_by_register(const UnwindRules& rules) const noexcept {
    if (!registers_.knows(rules.base)) return {};
    return registers_.values[rules.base] + static_cast<Word>(rules.offset);
  }

  void apply(const UnwindRule& rule, std::size_t number, Word frame,
             Registers& caller) const noexcept {
    const Word address = frame + static_cast<Word>(rule.offset);
    switch (rule.kind) {
      case UnwindRule::Kind::same:
        return;
      case UnwindRule::Kind::value:
        return caller.set(number, address);
      case UnwindRule::Kind::unknown:
        return caller.forget(number);
      case UnwindRule::Kind::saved:
        break;
    }
    const Value value = word_at(address);
    value ? caller.set(number, *value) : caller.forget(number);
  }

  // Evaluates the form that compilers write for realigned frames: the word at an offset from a
  // register.
  [[nodiscard]] Value evaluate(TableReader reader) const noexcept {
    constexpr std::uint8_t kDereference = 0x06;
    constexpr std::uint8_t kRegisterAndOffset = 0x70;
    Value value;
    while (!reader.is_at_end()) {
      const std::uint8_t code = reader.byte();
      if (code >= kRegisterAndOffset && code < kRegisterAndOffset + 32 && !value) {
        const std::size_t number = code - kRegisterAndOffset;
        if (!registers_.knows(number)) return {};
        value = registers_.values[number] + static_cast<Word>(reader.signed_number());
      } else if (code == kDereference && value) {
        value = word_at(*value);
      } else {
        return {};
      }
      if (!value) return {};
    }
    return value;
  }

  // Takes the next word that looks like a return address. If its function has a frame pointer, the
  // word below has the caller's frame pointer.
  bool scan() noexcept {
    // The image has no words below `begin_`.
    for (Word at = std::max(stack_pointer(), begin_); const Value word = word_at(at);
         at += sizeof(Word)) {
      if (!follows_call(*word & kAddressBits)) continue;
      const Value below = word_at(at - sizeof(Word));
      registers_.known = 0;
      if (below && *below > at && *below < end_) registers_.set(kFrameRegister, *below);
      registers_.set(kStackRegister, at + sizeof(Word));
      registers_.program_counter = *word & kAddressBits;
      return true;
    }
    return false;
  }

  // Returns whether the code before an address is a call. The code is read only if the address is
  // in a function.
  static bool follows_call(Word address) noexcept {
    constexpr Word kFirstPage = 4096;
    UnwindTable table;
    if (address < kFirstPage || !find_table(address - 1, table)) return false;
    if (address - table.start < 8) return false;
    const auto* code = reinterpret_cast<const std::uint8_t*>(address);
#if defined(__x86_64__)
    const auto by_pointer = [code](std::ptrdiff_t bytes) {
      return code[-bytes] == 0xFF && (code[1 - bytes] & 0x38) == 0x10;
    };
    return code[-5] == 0xE8 || by_pointer(2) || by_pointer(3) || by_pointer(4) || by_pointer(6) ||
           by_pointer(7);
#else
    std::uint32_t instruction = 0;
    std::memcpy(&instruction, code - 4, sizeof instruction);
    return (instruction & 0xFC000000U) == 0x94000000U || (instruction & 0xFFFFFC1FU) == 0xD63F0000U;
#endif
  }

  const ThreadImage& image_;
  Registers registers_;
  const Word begin_;
  const Word end_;
};

}  // namespace

void Registers::read(const void* signal_context) noexcept {
  const auto& context = *static_cast<const ucontext_t*>(signal_context);
  *this = {};
#if defined(__x86_64__)
  constexpr std::array<int, kRegisters> kPlaces{
      REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
      REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (std::size_t i = 0; i < kRegisters; ++i) {
    set(i, static_cast<std::uintptr_t>(context.uc_mcontext.gregs[kPlaces[i]]));
  }
  program_counter = values[kRegisters - 1];
#else
  for (std::size_t i = 0; i < kStackRegister; ++i) set(i, context.uc_mcontext.regs[i]);
  set(kStackRegister, context.uc_mcontext.sp);
  program_counter = context.uc_mcontext.pc;
#endif
}

// Copies word by word, so that the compiler does not call memcpy, in which a sanitizer would report
// accesses to a stack that is in use.
void ThreadImage::copy_stack(const char* top, const char* lowest) noexcept {
  begin = std::max(registers.values[kStackRegister], reinterpret_cast<Word>(lowest));
  const auto end = reinterpret_cast<Word>(top);
  count = 0;
  if (begin % sizeof(Word) != 0) return;
  const auto* from = reinterpret_cast<const Word*>(begin);
  for (; count < kMostWords && begin + (count + 1) * sizeof(Word) <= end; ++count) {
    words[count] = from[count];
    asm volatile("" : : : "memory");
  }
}

bool ThreadImage::copy_parked(const Stack& stack) noexcept {
  // The header of an inlined fiber is in its parent's frame, which may no longer exist.
  Context saved = nullptr;
  Word lowest = 0;
  registers = {};
  count = 0;
  if (!base::read_memory(&stack.context, &saved, sizeof saved) ||
      !base::read_memory(&stack.lowest, &lowest, sizeof lowest)) {
    return false;
  }
#ifdef WEFT_CONTEXT_BOOST
  begin = reinterpret_cast<Word>(saved);
#else
  SavedContext context{};
  if (saved == nullptr || !base::read_memory(saved, &context, sizeof context)) return false;
  begin = reinterpret_cast<Word>(context.stack_pointer);
  registers.program_counter = reinterpret_cast<Word>(context.resume);
  registers.set(kStackRegister, begin);
  registers.set(kFrameRegister, reinterpret_cast<Word>(context.frame_pointer));
#endif
  const auto end = reinterpret_cast<Word>(&stack);
  if (begin < lowest || begin >= end || begin % sizeof(Word) != 0) {
    return false;
  }
  count = std::min<std::size_t>((end - begin) / sizeof(Word), kMostWords);
  return base::read_memory(reinterpret_cast<const void*>(begin), words.data(),
                           count * sizeof(Word));
}

Backtrace calls_in(const ThreadImage& image) noexcept { return Walk(image).run(); }

}  // namespace weft::fibers
