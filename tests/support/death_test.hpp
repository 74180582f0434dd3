// Tests of what ends the process.
//
//   DEATH_TEST_CASE("a sentence", "what stderr must say") { ... }
//
// The body runs on the main thread of a process of its own, which starts from scratch: no test
// framework, no other threads. It makes the runtime it needs. The test passes when that process
// dies by a signal within 20 s (times kSlowdown) and its output holds the text.
#pragma once

#include <doctest/doctest.h>

namespace weft::test {

// A body that can be found by its place in the source; made before main().
struct DeathTest {
  using Body = void (*)();
  DeathTest(const char* place, Body body) noexcept;

  const char* place;
  Body body;
  DeathTest* next;
};

// Starts this program anew for the body at `place`, and checks how it ends.
void expect_death(const char* place, const char* text);

// In the new process: runs the body. The return value is for exit(), if it returns at all.
[[nodiscard]] int run_death_test(const char* place);

// The variable that tells a new process which body to run.
inline constexpr const char* kDeathVariable = "WEFT_DEATH_TEST";

// The variable that names the program that runs this one, where the kernel cannot start it alone.
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
