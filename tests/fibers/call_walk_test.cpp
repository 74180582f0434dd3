// Tests that calls are found in a copy of a stack, whatever the copy contains.
#include "fibers/calls/call_walk.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"
#include "tests/support/skip.hpp"

namespace {

using weft::fibers::Backtrace;
using weft::fibers::calls_in;
using weft::fibers::kFrameRegister;
using weft::fibers::kStackRegister;
using weft::fibers::ThreadImage;

TEST_SUITE_BEGIN("fibers/call_walk");

// The number of bytes that take_image() copies from the stack, upward from its own frame.
constexpr std::size_t kBytes = 4096;

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// Makes an image of a thread that has just called this function.
[[gnu::noinline]] void take_image(ThreadImage& image) {
  const char* frame = static_cast<const char*>(__builtin_frame_address(0));
  image.registers = {};
  image.registers.set(kStackRegister, number(frame + 2 * sizeof(void*)));
  image.registers.set(kFrameRegister, *reinterpret_cast<const std::uintptr_t*>(frame));
  image.registers.program_counter = number(__builtin_return_address(0));
  image.copy_stack(frame + kBytes);
}

// Returns its return address, which may remain on the stack after the call.
[[gnu::noinline]] const void* here() { return __builtin_return_address(0); }
[[gnu::noinline]] const void* earlier_call() {
  // The walk would not accept a call in the first few bytes of a function.
  asm volatile(".rept 8\n nop\n .endr");
  const void* site = here();
  asm volatile("" : "+r"(site));
  return site;
}

[[gnu::noinline]] void take_deeper(ThreadImage& image, int depth, const void*& deepest) {
  // The size is known only at run time, so the walk needs the frame register.
  auto* room = static_cast<char*>(__builtin_alloca(static_cast<std::size_t>(depth) * 16));
  asm volatile("" : : "r"(room) : "memory");
  if (depth > 1) {
    *reinterpret_cast<const void**>(room) = earlier_call();
    asm volatile("" : : "r"(room) : "memory");
    take_deeper(image, depth - 1, deepest);
  } else {
    deepest = __builtin_return_address(0);
    take_image(image);
  }
  asm volatile("" : : "r"(room) : "memory");
}

bool names(const Backtrace& trace, const void* address) {
  return std::ranges::count(trace.frames.begin(), trace.frames.begin() + trace.count, address) > 0;
}

TEST_CASE("a call walk finds the calls in a copied stack when it has the program's unwind tables") {
  if (weft::test::kSanitized) return weft::test::skip("a sanitizer's frames are larger");
  static ThreadImage image;
  const void* deepest = nullptr;
  take_deeper(image, 4, deepest);
  const Backtrace trace = calls_in(image);
  CHECK(trace.count >= 5);
  // The walk treats the current instruction like a call.
  CHECK(number(trace.frames[0]) == image.registers.program_counter + 1);
  CHECK(names(trace, deepest));
  CHECK(!names(trace, earlier_call()));
  // Without the frame register, the walk skips the innermost frame, but finds the caller.
  image.registers.forget(kFrameRegister);
  CHECK(names(calls_in(image), deepest));
}

TEST_CASE("a stack copy ends at the top of the stack or when the buffer is full") {
  static ThreadImage image;
  static const std::array<std::uintptr_t, ThreadImage::kMostWords + 2> stack{};
  const char* begin = reinterpret_cast<const char*>(stack.data());
  image.registers = {};
  image.registers.set(kStackRegister, number(begin));
  for (const std::size_t words : {0U, 1U, 7U}) {
    const char* top = begin + words * sizeof(std::uintptr_t);
    image.copy_stack(top);
    CHECK(image.count == words);
    image.copy_stack(top + 1);  // The walk ignores a part of a word.
    CHECK(image.count == words);
  }
  image.copy_stack(begin + sizeof stack);
  CHECK(image.count == ThreadImage::kMostWords);
}

TEST_CASE(
    "a stack copy starts at the lowest word of the stack when the stack pointer lies below the "
    "stack") {
  static ThreadImage image;
  static const std::array<std::uintptr_t, 8> stack{1, 2, 3, 4, 5, 6, 7, 8};
  const char* begin = reinterpret_cast<const char*>(stack.data());
  image.registers = {};
  image.registers.set(kStackRegister, number(begin) - 4096);
  image.copy_stack(begin + sizeof stack, begin);
  CHECK(image.begin == number(begin));
  CHECK(image.count == stack.size());
  CHECK(image.words[0] == 1);
}

TEST_CASE("a walk of an unreadable stack returns no more calls than the result can hold") {
  static ThreadImage image;
  image.registers = {};
  image.registers.set(kStackRegister, 4096);
  image.begin = 4096;
  image.words.fill(number(earlier_call()));
  image.count = 2;
  CHECK(calls_in(image).count == 3);  // The place and two calls; the copy ends there.
  image.count = ThreadImage::kMostWords;
  CHECK(calls_in(image).count == Backtrace::kMostFrames);
}

TEST_CASE(
    "a walk of a stack copy with random contents ends and returns a bounded number of calls") {
  if (weft::test::kSanitized) return weft::test::skip("a sanitizer's frames are larger");
  static ThreadImage original;
  static ThreadImage torn;
  const void* deepest = nullptr;
  take_deeper(original, 3, deepest);
  weft::test::Random random;
  for (int round = 0; round < 3000; ++round) {
    torn = original;
    for (std::uint64_t i = random.below(20); i > 0; --i) {
      auto& word = torn.words[random.below(torn.count)];
      const bool from_elsewhere = random.below(2) == 0;
      word = from_elsewhere ? torn.words[random.below(torn.count)] : word + random.below(64);
    }
    if (random.below(4) == 0) torn.registers.values[kFrameRegister] += random.below(4096);
    if (random.below(4) == 0) torn.registers.program_counter += random.below(4096);
    if (random.below(8) == 0) torn.count = random.below(8);
    CHECK(calls_in(torn).count <= Backtrace::kMostFrames);
  }
}

TEST_SUITE_END();

}  // namespace
