// Tests the names of fibers, which a stack's header stores in limited room.
#include <doctest/doctest.h>

#include <string>

#include "fibers/stack.hpp"

namespace {

using weft::fibers::FiberName;

TEST_SUITE_BEGIN("fibers/fiber_name");

TEST_CASE("a fiber name and its copies are truncated to fit and end with a zero byte") {
  static_assert(sizeof(FiberName) > FiberName::kMostCharacters);
  FiberName name;
  CHECK(name.view().empty());
  std::string text;
  for (char letter = ' '; letter < '~'; ++letter) {
    text += letter;
    name.assign(text);
    CHECK(name.view() == text.substr(0, FiberName::kMostCharacters));
    const FiberName::Copy copy = name.copy();
    CHECK(copy.size() == FiberName::kMostCharacters + 1);
    CHECK(copy.back() == '\0');
    CHECK(std::string(copy.data()) == name.view());
  }
  name.assign("red\x1b[31m");
  CHECK(std::string(name.printable_copy().data()) == "red?[31m");
  name.clear();
  CHECK(name.view().empty());
}

TEST_SUITE_END();

}  // namespace
