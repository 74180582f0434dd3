#include "base/panic.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/support/death_test.hpp"

namespace {

void write_text(const char* text) noexcept { (void)!write(STDERR_FILENO, text, std::strlen(text)); }

TEST_SUITE_BEGIN("base/panic");

TEST_CASE("WEFT_CHECK evaluates its condition once and continues if the condition is true") {
  int evaluated = 0;
  WEFT_CHECK(++evaluated == 1, "this is not said");
  CHECK(evaluated == 1);
}

DEATH_TEST_CASE("a failed WEFT_CHECK reports its message and its source file",
                "base/panic_test.cpp:") {
  WEFT_CHECK(false, "the moon is not made of cheese");
}

DEATH_TEST_CASE("a panic calls the panic hook after the panic message has been written",
                "\nthe hook\n") {
  weft::base::set_panic_hook([]() noexcept { write_text("the hook\n"); });
  weft::base::panic("a sentence", "file", 1);
}

DEATH_TEST_CASE("a panic inside the panic hook also ends the process",
                "weft: the second (file:2)") {
  weft::base::set_panic_hook([]() noexcept { weft::base::panic("the second", "file", 2); });
  weft::base::panic("the first", "file", 1);
}

DEATH_TEST_CASE("a panic message that is too long is truncated", "weft: xxxxxxxx") {
  const std::string sentence(5000, 'x');
  weft::base::panic(sentence.c_str(), "file", 1);
}

TEST_SUITE_END();

}  // namespace
