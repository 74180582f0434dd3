// Defines the header of a stack, with the data of a fiber that does not run.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <weft/detail/atomic.hpp>

#include "base/printable.hpp"
#include "fibers/context.hpp"
#include "fibers/exception_state.hpp"
#include "fibers/sanitizer.hpp"

namespace weft::detail {
struct LocalNode;
}

namespace weft::fibers {

struct Fiber;

// Stacks come in sizes of 16 KiB times a power of two.
inline constexpr std::size_t kSmallestStack = std::size_t{16} << 10;
inline constexpr unsigned kStackSizes = 11;
inline constexpr std::size_t kLargestStack = kSmallestStack << (kStackSizes - 1);
inline constexpr unsigned kDefaultSizeClass = 2;

[[nodiscard]] constexpr std::size_t stack_bytes(unsigned size_class) noexcept {
  return kSmallestStack << size_class;
}
// Returns the smallest size class with at least `bytes`; kStackSizes if no class is large enough.
[[nodiscard]] constexpr unsigned size_class_of(std::size_t bytes) noexcept {
  unsigned size_class = 0;
  while (size_class < kStackSizes && stack_bytes(size_class) < bytes) ++size_class;
  return size_class;
}

// Each stack has this many bytes beyond its size, for the calls of a parent whose child runs
// inlined. A fiber may run in place on the stack of a parent that has used at most 15 KiB, and
// still has its full stack size. A fiber that is alone on a stack must not rely on these bytes.
inline constexpr std::size_t kInlineBytes = std::size_t{16} << 10;

// A name of up to 31 characters. Relaxed: the fiber writes the name, and dumps may read a mixture
// of an old and a new name.
class FiberName {
 public:
  static constexpr std::size_t kMostCharacters = 31;

  void assign(std::string_view name) noexcept {
    const char* from = name.data();
    std::size_t left = name.size() < kMostCharacters ? name.size() : kMostCharacters;
    for (detail::Atomic<std::uint64_t>& to : words_) {
      const std::size_t count = left < sizeof(std::uint64_t) ? left : sizeof(std::uint64_t);
      to.store(first_word(from, count), detail::relaxed);
      from += count;
      left -= count;
    }
  }
  void clear() noexcept { words_[0].store(0, detail::relaxed); }
  // Only the fiber itself may call it. The view is valid until the name changes.
  [[nodiscard]] std::string_view view() const noexcept {
    static_assert(sizeof words_ == kMostCharacters + 1);
    return reinterpret_cast<const char*>(words_.data());
  }
  // A copy of the name, for other threads.
  using Copy = std::array<char, kMostCharacters + 1>;
  [[nodiscard]] Copy copy() const noexcept {
    Words words{};
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(detail::relaxed);
    return std::bit_cast<Copy>(words);
  }
  // Returns a copy that is safe on a terminal.
  [[nodiscard]] Copy printable_copy() const noexcept {
    Copy text = copy();
    base::make_printable(std::span(text.data(), std::strlen(text.data())));
    return text;
  }

 private:
  using Words = std::array<std::uint64_t, (kMostCharacters + 1) / sizeof(std::uint64_t)>;

  // Returns up to 8 characters, followed by zero bytes. To copy a number of bytes that the compiler
  // cannot see would be a function call, which takes longer than the rest of assign().
  [[nodiscard]] static std::uint64_t first_word(const char* from, std::size_t count) noexcept {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t word = 0;
    if (count == sizeof word) {
      std::memcpy(&word, from, sizeof word);
    } else if (count >= sizeof(std::uint32_t)) {
      std::uint32_t first = 0;
      std::uint32_t last = 0;  // If count < 8, it overlaps `first`.
      std::memcpy(&first, from, sizeof first);
      std::memcpy(&last, from + count - sizeof last, sizeof last);
      word = first | std::uint64_t{last} << (count - sizeof last) * 8;
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        word |= std::uint64_t{static_cast<unsigned char>(from[i])} << i * 8;
      }
    }
    return word;
  }

  std::array<detail::Atomic<std::uint64_t>, Words{}.size()> words_{};  // Ends with a zero byte.
};

// The header of a stack, at the top of the stack's memory. Every fiber that runs on the stack uses
// that page, so the header costs no extra page. A worker also has a header for its thread's own
// stack. A fiber that runs inlined has a header in a frame of its parent, on whose stack it runs.
// Owner: the thread that runs on the stack. If no thread runs on the stack, the owner is the holder
// of the list with the stack, or the holder of the parked fiber's waker.
struct Stack {
  // A flag in `no_switch`: the process is the child of a fork that the bound fiber made.
  static constexpr std::uint16_t kForked = 0x8000;

  // The first cache line has everything that a fiber needs to continue, because most lines are cold
  // then. This field is the place at which the fiber continues; it is stale while a fiber runs
  // here. Relaxed: the thread that hands the stack over publishes it.
  detail::Atomic<Context> context{nullptr};
  Fiber* fiber = nullptr;  // The bound or inlined fiber; null if free.
  ExceptionState exceptions;
  int saved_errno = 0;
  std::uint16_t no_switch = 0;  // Scopes in which the bound fiber must not switch.
  std::uint8_t size_class = 0;
  detail::LocalNode* locals = nullptr;  // Values of FiberLocals; destroyed as the fiber ends.
  Stack* next = nullptr;                // The next stack in a list of free stacks.
  char* lowest = nullptr;               // The end of the memory, just above the guard.

  std::uint32_t index = 0;  // Position among the stacks of its size.
  // The bound fiber's site, copied from Fiber::site_or_time. Relaxed: only dumps read it.
  detail::Atomic<std::int32_t> site{0};
  [[no_unique_address]] SanitizerStack sanitizer;
  // The index of a pinned fiber's worker.
  std::uint32_t home = 0;
  // The id of the bound fiber, which writes it; dumps may read an old value.
  detail::Atomic<std::uint64_t> fiber_id{0};
  FiberName name;
};

// Returns how many bytes of the caller's stack a function that is called now would have.
[[gnu::always_inline]] inline std::size_t room_left(const Stack& stack) noexcept {
  return static_cast<std::size_t>(static_cast<char*>(__builtin_frame_address(0)) - stack.lowest);
}

// Prefetches the memory that a parked fiber probably uses first: the first line of the header and
// the frames below it, all in one page. The prefetch is useful if many cold fibers are about to run
// one after another.
inline void prefetch(const Stack* stack) noexcept {
  if (stack == nullptr) return;
  const char* header = reinterpret_cast<const char*>(stack);
  for (std::ptrdiff_t offset = -384; offset <= 0; offset += 64) {
    __builtin_prefetch(header + offset);
  }
}

// Prefetches exactly the frames. Requires the header to be in the cache, because the header
// contains their address.
inline void prefetch_frames(const Stack* stack) noexcept {
  if (stack == nullptr) return;
  const auto context = reinterpret_cast<std::uintptr_t>(stack->context.load(detail::relaxed));
  for (std::uintptr_t address = context - 64; address != context + 320; address += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(address));
  }
}

}  // namespace weft::fibers
