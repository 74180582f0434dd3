// Tests the bare jump: which registers it preserves, and how a new stack begins. The file is also
// built without optimization, because the compiler then uses registers differently.
#include "fibers/context.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cfenv>
#include <cstdint>

#include "fibers/sanitizer.hpp"
#include "tests/support/skip.hpp"

namespace {

using weft::fibers::Arrival;
using weft::fibers::Context;

#ifdef WEFT_CONTEXT_BOOST
constexpr bool kAssembly = false;
#else
constexpr bool kAssembly = true;
#endif
// Is true if a jump saves the floating-point control registers of its caller.
#if defined(WEFT_CONTEXT_BOOST) && defined(__x86_64__)
constexpr bool kSavesRounding = true;
#else
constexpr bool kSavesRounding = false;
#endif

// Switches notify the sanitizers, but bare jumps do not.
#define BARE_TEST_CASE(sentence) BARE_TEST_CASE_AS(sentence, DOCTEST_ANONYMOUS(bare_test_))
#define BARE_TEST_CASE_AS(sentence, body)                                                    \
  void body();                                                                               \
  TEST_CASE(sentence) {                                                                      \
    if (weft::fibers::kSanitized) return weft::test::skip("bare jumps notify no sanitizer"); \
    body();                                                                                  \
  }                                                                                          \
  void body()

// Runs `entry` on a separate stack, which lives until the test ends.
class Partner {
 public:
  explicit Partner(void (*entry)(Arrival))
      : context_(
            weft::fibers::make_context(memory_.data() + memory_.size(), memory_.size(), entry)) {}
  void* visit(void* message) {
    const Arrival back = weft::fibers::jump(context_, message);
    context_ = back.fctx;
    return back.data;
  }
  void* visit_on_top(void* message, Arrival (*visitor)(Arrival)) {
    const Arrival back = weft::fibers::jump_on_top(context_, message, visitor);
    context_ = back.fctx;
    return back.data;
  }
  [[nodiscard]] Context& context() { return context_; }
  [[nodiscard]] bool contains(const void* address) const {
    const char* byte = static_cast<const char*>(address);
    return byte >= memory_.data() && byte < memory_.data() + memory_.size();
  }

 private:
  alignas(16) std::array<char, std::size_t{128} << 10> memory_{};
  Context context_;
};

// Changes all registers that a call would preserve.
[[gnu::always_inline]] inline void scramble_registers() {
#if defined(__x86_64__)
  asm volatile(
      "movq $-1, %%rbx\n\tmovq %%rbx, %%r12\n\tmovq %%rbx, %%r13\n\t"
      "movq %%rbx, %%r14\n\tmovq %%rbx, %%r15\n\tpcmpeqd %%xmm0, %%xmm0\n\t"
      "movdqa %%xmm0, %%xmm7\n\tmovdqa %%xmm0, %%xmm15"
      :
      :
      : "rbx", "r12", "r13", "r14", "r15", "xmm0", "xmm7", "xmm15");
#elif defined(__aarch64__)
  asm volatile(
      "mov x19, #-1\n\tmov x20, x19\n\tmov x21, x19\n\tmov x22, x19\n\tmov x23, x19\n\t"
      "mov x24, x19\n\tmov x25, x19\n\tmov x26, x19\n\tmov x27, x19\n\tmov x28, x19\n\t"
      "fmov d8, x19\n\tfmov d9, x19\n\tfmov d10, x19\n\tfmov d11, x19\n\t"
      "fmov d12, x19\n\tfmov d13, x19\n\tfmov d14, x19\n\tfmov d15, x19"
      :
      :
      : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "d8", "d9", "d10",
        "d11", "d12", "d13", "d14", "d15");
#endif
}

[[noreturn]] void scramble_for_ever(Arrival arrival) {
  for (;;) {
    scramble_registers();
    arrival = weft::fibers::jump(arrival.fctx, arrival.data);
  }
}
[[noreturn]] void return_for_ever(Arrival arrival) {
  for (;;) arrival = weft::fibers::jump(arrival.fctx, arrival.data);
}

// Uses many values before, between and after the jumps, in different ways.
template <class Pause>
[[gnu::noinline]] long double mix(std::uint64_t seed, int rounds, Pause pause) {
  std::uint64_t a = seed, b = ~seed, c = seed * 3, d = seed << 7, e = seed ^ 0x5555, f = seed + 1;
  double p = 0.5 + static_cast<double>(seed), q = p / 3, r = p * p, s = q - r;
  float u = 1.5F, v = 0.25F;
  long double x = 0.125L, y = 3;
  for (int i = 0; i < rounds; ++i) {
    a += b ^ c;
    d = (d << 1) | (d >> 63);
    p = p * 0.75 + q;
    u = u * 0.5F + v;
    x = x / 2 + y;
    pause();
    b += d & e;
    c ^= a >> 3;
    e += f * a;
    f ^= b;
    q = s * 0.5 - p * 0.25;
    pause();
    r = r * 0.5 + q;
    s = r - p * 0.125;
    v = 1 - u * 0.25F;
    y = 1 - x / 4;
  }
  return static_cast<long double>(a ^ b ^ c ^ d ^ e ^ f) + p + q + r + s + u + v + x + y;
}

TEST_SUITE_BEGIN("fibers/context");

BARE_TEST_CASE("register values survive a thousand jumps between stacks") {
  for (std::uint64_t seed = 1; seed < 5; ++seed) {
    Partner partner(&scramble_for_ever);
    Context context = partner.context();
    const long double expected = mix(seed, 500, [] {});
    const long double found = mix(seed, 500, [&context] {
      context = weft::fibers::jump(context, nullptr).fctx;
      scramble_registers();
    });
    CHECK(found == expected);
  }
}

BARE_TEST_CASE("a jump between stacks passes a pointer in both directions") {
  Partner partner([](Arrival arrival) {
    int sum = 0;
    for (;;) {
      sum += *static_cast<int*>(arrival.data);
      arrival = weft::fibers::jump(arrival.fctx, &sum);
    }
  });
  int sum = 0;
  for (int i = 0; i < 100; ++i) {
    sum += i;
    CHECK(*static_cast<int*>(partner.visit(&i)) == sum);
  }
}

struct Beginning {
  std::uintptr_t misalignment;
  void* return_address;
  void* frame_of_caller;
};
[[noreturn]] void describe_beginning(Arrival arrival) {
  auto* frame = static_cast<void**>(__builtin_frame_address(0));
  *static_cast<Beginning*>(arrival.data) = {reinterpret_cast<std::uintptr_t>(frame) % 16,
                                            __builtin_return_address(0), *frame};
  return_for_ever(weft::fibers::jump(arrival.fctx, nullptr));
}

BARE_TEST_CASE("a new stack is aligned, and unwinders stop at its end") {
  Partner partner(&describe_beginning);
  Beginning beginning{1, &beginning, &beginning};
  partner.visit(&beginning);
  CHECK(beginning.misalignment == 0);
  if (kAssembly) {
    CHECK(beginning.return_address == nullptr);
    CHECK(beginning.frame_of_caller == nullptr);
  }
}

struct Visited {
  Partner* partner;
  bool on_its_stack = false;
  bool below_what_it_uses = false;
  Context arrived_from = nullptr;
};

BARE_TEST_CASE(
    "a function that runs on top of a suspended stack passes its result to the stack's owner") {
  Partner partner(&scramble_for_ever);
  partner.visit(nullptr);  // Only a stack that has begun can be visited.
  const char* end = weft::fibers::end_of(partner.context());
  for (int i = 0; i < 100; ++i) {
    Visited visited{&partner};
    void* answer = partner.visit_on_top(&visited, [](Arrival arrival) {
      auto& here = *static_cast<Visited*>(arrival.data);
      const char probe = 0;
      const void* address = &probe;
      here.on_its_stack = here.partner->contains(address);
      here.below_what_it_uses =
          static_cast<const char*>(address) < weft::fibers::end_of(here.partner->context());
      return Arrival{arrival.fctx, &here.arrived_from};
    });
    CHECK(answer == &visited.arrived_from);  // The owner returns its argument.
    CHECK(visited.on_its_stack);
    // Boost.Context has resumed the owner by then, and the visitor may use the place of its saved
    // registers.
    CHECK((!kAssembly || visited.below_what_it_uses));
    CHECK(weft::fibers::end_of(partner.context()) == end);
  }
}

BARE_TEST_CASE(
    "a suspended stack can be resumed after a function that ran on it has jumped to another "
    "stack") {
  Partner partner(&return_for_ever);
  int first = 0;
  int second = 0;
  partner.visit(&first);
  const auto leave = [](Arrival arrival) { return weft::fibers::jump(arrival.fctx, nullptr); };
  for (int i = 0; i < 100; ++i) {
    CHECK(partner.visit_on_top(&first, leave) == nullptr);
    if (i % 3 == 0) CHECK(partner.visit(&second) == &second);
  }
  CHECK(partner.visit(&second) == &second);
}

// Returns 1/3, which is smaller when rounded to nearest than when rounded upward.
double third() {
  const volatile double one = 1;
  const volatile double three = 3;
  return one / three;
}
[[noreturn]] void round_upward(Arrival arrival) {
  std::fesetround(FE_UPWARD);
  return_for_ever(weft::fibers::jump(arrival.fctx, nullptr));
}
[[noreturn]] void round_upward_for_a_while(Arrival arrival) {
  for (;;) {
    const int before = std::fegetround();
    std::fesetround(FE_UPWARD);
    std::fesetround(before);
    arrival = weft::fibers::jump(arrival.fctx, nullptr);
  }
}

// Tests the rule of docs/getting_started.md.
BARE_TEST_CASE(
    "a fiber that restores the rounding mode before it waits does not change the mode of other "
    "fibers") {
  Partner partner(&round_upward_for_a_while);
  std::fesetround(FE_DOWNWARD);
  for (int i = 0; i < 3; ++i) {
    partner.visit(nullptr);
    CHECK(std::fegetround() == FE_DOWNWARD);
  }
  std::fesetround(FE_TONEAREST);
}
// The effect of code that breaks the rule depends on the backend, and is not guaranteed. x86-64 has
// two control registers: std::fegetround() reads one, and the division uses the other one.
BARE_TEST_CASE(
    "a rounding mode that a fiber sets remains in effect on the thread, unless the backend is "
    "Boost.Context") {
  const double nearest = third();
  Partner partner(&round_upward);
  partner.visit(nullptr);
  CHECK(std::fegetround() == (kSavesRounding ? FE_TONEAREST : FE_UPWARD));
  CHECK((third() == nearest) == kSavesRounding);
  std::fesetround(FE_TONEAREST);
  partner.visit(nullptr);
  CHECK(std::fegetround() == FE_TONEAREST);
  CHECK(third() == nearest);
}

TEST_SUITE_END();

}  // namespace
