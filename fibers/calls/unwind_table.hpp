// Reads the compiler's description of a function's frames for unwinders (.eh_frame).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fibers/calls/thread_image.hpp"

namespace weft::fibers {

// Reads a table byte by byte, and never beyond its end.
class TableReader {
 public:
  TableReader(const std::uint8_t* begin, const std::uint8_t* end) noexcept
      : at_(begin), end_(end) {}

  [[nodiscard]] bool is_at_end() const noexcept { return at_ >= end_; }
  [[nodiscard]] const std::uint8_t* at() const noexcept { return at_; }
  std::uint64_t fixed(std::size_t bytes) noexcept {
    std::uint64_t value = 0;
    if (static_cast<std::size_t>(end_ - at_) < bytes) {
      at_ = end_;
      return 0;
    }
    std::memcpy(&value, at_, bytes);  // Both processors are little-endian.
    at_ += bytes;
    return value;
  }
  std::uint8_t byte() noexcept { return static_cast<std::uint8_t>(fixed(1)); }
  std::uint64_t number() noexcept { return leb(nullptr); }
  std::int64_t signed_number() noexcept {
    unsigned bits = 0;
    const std::uint64_t value = leb(&bits);
    const bool negative = bits > 0 && bits < 64 && (value >> (bits - 1) & 1) != 0;
    return static_cast<std::int64_t>(negative ? value | ~std::uint64_t{0} << bits : value);
  }
  TableReader block() noexcept {
    const std::uint64_t bytes = number();
    const auto left = static_cast<std::uint64_t>(end_ - at_);
    const std::uint8_t* begin = at_;
    at_ += bytes < left ? bytes : left;
    return {begin, at_};
  }
  void skip(std::size_t bytes) noexcept {
    at_ = static_cast<std::size_t>(end_ - at_) < bytes ? end_ : at_ + bytes;
  }

 private:
  std::uint64_t leb(unsigned* bits) noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; !is_at_end(); shift += 7) {
      const std::uint8_t next = byte();
      if (shift < 64) value |= std::uint64_t{next & 0x7Fu} << shift;
      if (bits != nullptr) *bits = shift + 7;
      if ((next & 0x80) == 0) break;
    }
    return value;
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

// Describes how to find the caller's registers.
struct UnwindRule {
  enum class Kind : std::uint8_t { same, saved, value, unknown };
  Kind kind = Kind::same;
  std::int64_t offset = 0;  // Relative to the frame's address; for `saved` and `value`.
};
struct UnwindRules {
  std::array<UnwindRule, kRegisters> registers{};
  bool by_expression = false;  // Whether an expression gives the frame's address.
  TableReader expression{nullptr, nullptr};
  std::size_t base = kRegisters;
  std::int64_t offset = 0;
  bool ends_here = false;  // The return address is marked as undefined.
};

// The fields of an unwind table that precede its instructions.
struct UnwindTable {
  TableReader common{nullptr, nullptr};
  TableReader own{nullptr, nullptr};
  std::uint64_t code_unit = 1;
  std::int64_t data_unit = 1;
  std::size_t return_column = 0;
  std::uintptr_t start = 0;
  bool is_signal_frame = false;
};

// Finds the table for the function at `address`. Returns false if no table exists.
[[nodiscard]] bool find_table(std::uintptr_t address, UnwindTable& table) noexcept;
// Executes the instructions of the table up to `address`. Returns false if an instruction is
// unknown.
[[nodiscard]] bool rules_at(std::uintptr_t address, const UnwindTable& table,
                            UnwindRules& rules) noexcept;

}  // namespace weft::fibers
