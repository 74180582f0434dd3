// Tests the instructions of an unwind table, and their result at an address.
#include "fibers/calls/unwind_table.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace {

using weft::fibers::find_table;
using weft::fibers::kFrameRegister;
using weft::fibers::kRegisters;
using weft::fibers::kStackRegister;
using weft::fibers::rules_at;
using weft::fibers::TableReader;
using weft::fibers::UnwindRule;
using weft::fibers::UnwindRules;
using weft::fibers::UnwindTable;

using Bytes = std::vector<std::uint8_t>;

TEST_SUITE_BEGIN("fibers/unwind_table");

constexpr std::uintptr_t kStart = 1000;
constexpr auto kNumber = static_cast<std::uint8_t>(kRegisters);

// Returns the rules that the instructions give `offset` bytes after the start of a function.
UnwindRules rules_of(const Bytes& bytes, std::uintptr_t offset) {
  UnwindTable table;
  table.own = TableReader(bytes.data(), bytes.data() + bytes.size());
  table.start = kStart;
  table.data_unit = -8;
  UnwindRules rules;
  CHECK(rules_at(kStart + offset, table, rules));
  return rules;
}

TEST_CASE("an unwind instruction applies to its own address and to all higher addresses") {
  const Bytes bytes{0x0C, 7, 8, 0x41, 0x0E, 16, 0x02, 5, 0x0E, 24};
  CHECK(rules_of(bytes, 0).base == 7);
  CHECK(rules_of(bytes, 0).offset == 8);
  CHECK(rules_of(bytes, 1).offset == 16);
  CHECK(rules_of(bytes, 5).offset == 16);
  CHECK(rules_of(bytes, 6).offset == 24);
}

TEST_CASE("every unwind instruction that defines a frame address is supported") {
  CHECK(rules_of({0x0C, 7, 8, 0x0D, 6}, 0).base == 6);
  CHECK(rules_of({0x12, 6, 0x7E}, 0).base == 6);
  CHECK(rules_of({0x12, 6, 0x7E}, 0).offset == 16);
  CHECK(rules_of({0x0C, 7, 8, 0x13, 0x7D}, 0).base == 7);
  CHECK(rules_of({0x0C, 7, 8, 0x13, 0x7D}, 0).offset == 24);
  CHECK(rules_of({0x0F, 1, 0x9C}, 0).by_expression);
  CHECK(!rules_of({0x0F, 1, 0x9C, 0x0C, 7, 8}, 0).by_expression);
}

TEST_CASE("unwind rules for a register are applied, saved and restored") {
  const UnwindRules saved = rules_of({0x86, 2}, 0);
  CHECK(saved.registers[6].kind == UnwindRule::Kind::saved);
  CHECK(saved.registers[6].offset == -16);
  CHECK(rules_of({0x86, 2, 0xC6}, 0).registers[6].kind == UnwindRule::Kind::same);
  CHECK(rules_of({0x0A, 0x86, 2, 0x0B}, 0).registers[6].kind == UnwindRule::Kind::same);
  CHECK(rules_of({0x0A, 0x86, 2}, 0).registers[6].kind == UnwindRule::Kind::saved);
}

TEST_CASE("unwind rules for registers that a walk does not need are ignored") {
  const UnwindRules rules = rules_of({0x05, kNumber, 1, 0x06, kNumber, 0x0C, kNumber - 1, 8}, 0);
  for (const UnwindRule& rule : rules.registers) {
    CHECK(rule.kind == UnwindRule::Kind::same);
    CHECK(rule.offset == 0);
  }
  CHECK(!rules_of({0x05, kNumber, 1}, 0).by_expression);
  CHECK(!rules_of({0x05, kNumber, 1, 0x06, kNumber}, 0).by_expression);
  CHECK(rules_of({0x0F, 1, 0x9C, 0x06, kNumber}, 0).by_expression);
}

TEST_CASE("an unwind table that restores a missing state or saves too many states is rejected") {
  UnwindTable table;
  UnwindRules rules;
  const Bytes none{0x0B};
  table.own = TableReader(none.data(), none.data() + none.size());
  CHECK(!rules_at(0, table, rules));
  const Bytes many(5, 0x0A);
  table.own = TableReader(many.data(), many.data() + many.size());
  CHECK(!rules_at(0, table, rules));
}

TEST_CASE(
    "an unwind table reader returns 0 for a number that continues beyond the end of the table") {
  const Bytes bytes{0x81, 0x01, 0x7F, 0xFF, 0x7E, 0x80};
  TableReader reader(bytes.data(), bytes.data() + bytes.size());
  CHECK(reader.number() == 129);
  CHECK(reader.signed_number() == -1);
  CHECK(reader.signed_number() == -129);
  CHECK(reader.number() == 0);
  CHECK(reader.is_at_end());
  CHECK(reader.fixed(1) == 0);
  TableReader block = TableReader(bytes.data() + 1, bytes.data() + 3).block();
  CHECK(block.byte() == 0x7F);
  CHECK(block.is_at_end());
}

// At the start of a function, its caller's frame is where the stack pointer was before the call.
TEST_CASE("unwind rules are found for the first instruction of a function") {
  void (*function)() = +[] { CHECK(kStart != 0); };
  const auto address = reinterpret_cast<std::uintptr_t>(function);
  UnwindTable table;
  REQUIRE(find_table(address, table));
  CHECK(table.start == address);
  UnwindRules rules;
  REQUIRE(rules_at(address, table, rules));
  CHECK(rules.base == kStackRegister);
  CHECK(rules.registers[kFrameRegister].kind == UnwindRule::Kind::same);
}

TEST_SUITE_END();

}  // namespace
