// Tests of faults that end the process.
//
//   DEATH_TEST_CASE("a sentence", "what stderr must say") { ... }
//
// The body runs on the main thread of a new process, which has no test framework and no other
// threads. The body makes the runtime that it needs. The test passes if a signal ends that process
// within 20 s (times kSlowdown) and its output contains the text.
#pragma once

#include <doctest/doctest.h>

namespace weft::test {

// Registers a body under its place in the source, before main() runs.
struct DeathTest {
  using Body = void (*)();
  DeathTest(const char* place, Body body) noexcept;

  const char* place;
  Body body;
  DeathTest* next;
};

// Starts this program again for the body at `place`, and checks how the new process ends.
void expect_death(const char* place, const char* text);

// Runs the body in the new process. If the function returns, the caller passes its result to
// exit().
[[nodiscard]] int run_death_test(const char* place);

// The variable that names the body for a new process.
inline constexpr const char* kDeathVariable = "WEFT_DEATH_TEST";

// The variable that names the emulator, if the kernel cannot start this program directly.
inline constexpr const char* kEmulatorVariable = "WEFT_TEST_EMULATOR";

}  // namespace weft::test

#define WEFT_DEATH_STRING_IMPL(value) #value
#define WEFT_DEATH_STRING(value) WEFT_DEATH_STRING_IMPL(value)
#define WEFT_DEATH_PLACE __FILE__ ":" WEFT_DEATH_STRING(__LINE__)
#define WEFT_DEATH_TEST_CASE_IMPL(name, registered, sentence, text)                   \
  static void name();                                                                 \
  static const ::weft::test::DeathTest registered(WEFT_DEATH_PLACE, &name);           \
  DOCTEST_TEST_CASE(sentence) { ::weft::test::expect_death(WEFT_DEATH_PLACE, text); } \
  static void name()
#define DEATH_TEST_CASE(sentence, text)                          \
  WEFT_DEATH_TEST_CASE_IMPL(DOCTEST_ANONYMOUS(weft_death_test_), \
                            DOCTEST_ANONYMOUS(weft_death_registered_), sentence, text)
