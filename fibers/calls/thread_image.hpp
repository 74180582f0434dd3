// A snapshot of a thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::fibers {

struct Stack;

// The registers have the same numbers as in unwind tables.
#if defined(__x86_64__)
inline constexpr std::size_t kRegisters = 17;
inline constexpr std::size_t kStackRegister = 7;
inline constexpr std::size_t kFrameRegister = 6;
#else
inline constexpr std::size_t kRegisters = 32;
inline constexpr std::size_t kStackRegister = 31;
inline constexpr std::size_t kFrameRegister = 29;
#endif

// The contents of a thread's registers; some of them may be unavailable.
struct Registers {
  void set(std::size_t number, std::uintptr_t value) noexcept {
    values[number] = value;
    known |= std::uint64_t{1} << number;
  }
  void forget(std::size_t number) noexcept { known &= ~(std::uint64_t{1} << number); }
  // Reads all registers from the context that a signal handler receives.
  void read(const void* context) noexcept;
  [[nodiscard]] bool knows(std::size_t number) const noexcept {
    return number < kRegisters && (known >> number & 1) != 0;
  }

  std::uintptr_t program_counter = 0;
  std::array<std::uintptr_t, kRegisters> values{};
  std::uint64_t known = 0;
};

// Describes a thread at one moment: its registers, and the words of its stack from the stack
// pointer upwards. The image contains only the inner part of a deep stack.
struct ThreadImage {
  static constexpr std::size_t kMostWords = 4096;

  // Copies the words from the stack pointer up to `top`. Any code may call it, even a signal
  // handler. If the stack has overflowed, the stack pointer may be below `lowest`; the function
  // then copies the words from `lowest` upwards.
  void copy_stack(const char* top, const char* lowest = nullptr) noexcept;

  // Copies the stack of a parked fiber. Also copies the registers with which the fiber will resume,
  // except in a build with Boost.Context. Returns false if the stack cannot be read. If the fiber
  // is resumed meanwhile, the copy is invalid, which the caller must detect.
  [[nodiscard]] bool copy_parked(const Stack& stack) noexcept;

  Registers registers;
  std::uintptr_t begin = 0;  // The address of the first word.
  std::size_t count = 0;
  std::array<std::uintptr_t, kMostWords> words;
};

}  // namespace weft::fibers
