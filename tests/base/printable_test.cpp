#include "base/printable.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

std::string printable(std::string text) {
  weft::base::make_printable(text);
  return text;
}

}  // namespace

TEST_SUITE_BEGIN("base/printable");

TEST_CASE("printable() replaces only control characters with question marks") {
  CHECK(printable("a b~") == "a b~");
  CHECK(printable("red\x1b[31m\n\t\x7f") == "red?[31m???");
  CHECK(printable("\xC3\xA4\xE2\x82\xAC") == "\xC3\xA4\xE2\x82\xAC");
  CHECK(printable("\xC2\x9B"
                  "31m") == "\xC2?31m");                 // U+009B also begins a command.
  CHECK(printable("\xC2\x80\xC2\x9F") == "\xC2?\xC2?");  // The first and the last control
                                                         // character.
  CHECK(printable("\xC2\xA0\xE2\x82\x9B") == "\xC2\xA0\xE2\x82\x9B");
  CHECK(printable("").empty());
}

TEST_SUITE_END();
