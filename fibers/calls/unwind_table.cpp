#include "fibers/calls/unwind_table.hpp"

// The C++ runtime's function that finds the unwind table of a function. With a
// recent C library, it takes no lock.
extern "C" {
struct weft_eh_bases {
  void* text;
  void* data;
  void* function;
};
const void* weft_find_unwind_table(void* address, weft_eh_bases* bases) __asm__("_Unwind_Find_FDE");
}

namespace weft::fibers {

namespace {

using Word = std::uintptr_t;

std::size_t encoded_bytes(std::uint8_t encoding) noexcept {
  switch (encoding & 0x07) {
    case 0x02:
      return 2;
    case 0x03:
      return 4;
    default:
      return 8;
  }
}

// Executes the instructions of an unwind table up to an address.
class Interpreter {
 public:
  Interpreter(const UnwindTable& table, Word address) noexcept
      : table_(table), address_(address), location_(table.start) {}

  // Returns false at an unknown instruction.
  bool run(UnwindRules& rules) noexcept {
    if (!run_part(table_.common, rules)) return false;
    initial_ = rules;
    return run_part(table_.own, rules);
  }

 private:
  bool run_part(TableReader reader, UnwindRules& rules) noexcept {
    while (!reader.is_at_end() && location_ <= address_) {
      const std::uint8_t code = reader.byte();
      const std::uint8_t low = code & 0x3F;
      switch (code & 0xC0) {
        case 0x40:
          location_ += low * table_.code_unit;
          break;
        case 0x80:
          set(rules, low, UnwindRule::Kind::saved, scaled(reader.number()));
          break;
        case 0xC0:
          restore(rules, low);
          break;
        default:
          if (!run_extended(code, reader, rules)) return false;
      }
    }
    return true;
  }

  bool run_extended(std::uint8_t code, TableReader& reader, UnwindRules& rules) noexcept {
    switch (code) {
      case 0x00:  // nothing
      case 0x2D:  // switches the signing of return addresses
        return true;
      case 0x02:
      case 0x03:
      case 0x04:
        location_ += reader.fixed(std::size_t{1} << (code - 2)) * table_.code_unit;
        return true;
      case 0x06:
        restore(rules, reader.number());
        return true;
      case 0x0A:
        if (depth_ == kept_.size()) return false;
        kept_[depth_++] = rules;
        return true;
      case 0x0B:
        if (depth_ == 0) return false;
        rules = kept_[--depth_];
        return true;
      case 0x2E:  // bytes of arguments
        (void)reader.number();
        return true;
      default:
        return code >= 0x0C && code <= 0x13 && code != 0x10 && code != 0x11
                   ? define_frame(code, reader, rules)
                   : define_register(code, reader, rules);
    }
  }

  static bool set_frame(UnwindRules& rules, std::size_t base, std::int64_t offset) noexcept {
    rules.by_expression = false;
    rules.base = base;
    rules.offset = offset;
    return true;
  }

  bool define_frame(std::uint8_t code, TableReader& reader, UnwindRules& rules) const noexcept {
    switch (code) {
      case 0x0C: {
        const std::size_t base = reader.number();
        return set_frame(rules, base, static_cast<std::int64_t>(reader.number()));
      }
      case 0x0D:
        return set_frame(rules, reader.number(), rules.offset);
      case 0x0E:
        return set_frame(rules, rules.base, static_cast<std::int64_t>(reader.number()));
      case 0x12: {
        const std::size_t base = reader.number();
        return set_frame(rules, base, reader.signed_number() * table_.data_unit);
      }
      case 0x13:
        return set_frame(rules, rules.base, reader.signed_number() * table_.data_unit);
      default:
        rules.by_expression = true;
        rules.expression = reader.block();
        return true;
    }
  }

  bool define_register(std::uint8_t code, TableReader& reader, UnwindRules& rules) const noexcept {
    const std::size_t number = reader.number();
    switch (code) {
      case 0x05:
        set(rules, number, UnwindRule::Kind::saved, scaled(reader.number()));
        return true;
      case 0x07:
        if (number == table_.return_column) rules.ends_here = true;
        set(rules, number, UnwindRule::Kind::unknown, 0);
        return true;
      case 0x08:
        set(rules, number, UnwindRule::Kind::same, 0);
        return true;
      case 0x09:  // in another register
        (void)reader.number();
        set(rules, number, UnwindRule::Kind::unknown, 0);
        return true;
      case 0x10:
      case 0x16:  // by an expression
        (void)reader.block();
        set(rules, number, UnwindRule::Kind::unknown, 0);
        return true;
      case 0x11:
        set(rules, number, UnwindRule::Kind::saved, reader.signed_number() * table_.data_unit);
        return true;
      case 0x14:
        set(rules, number, UnwindRule::Kind::value, scaled(reader.number()));
        return true;
      case 0x15:
        set(rules, number, UnwindRule::Kind::value, reader.signed_number() * table_.data_unit);
        return true;
      default:
        return false;
    }
  }

  [[nodiscard]] std::int64_t scaled(std::uint64_t offset) const noexcept {
    return static_cast<std::int64_t>(offset) * table_.data_unit;
  }
  static void set(UnwindRules& rules, std::size_t number, UnwindRule::Kind kind,
                  std::int64_t offset) noexcept {
    if (number < kRegisters) rules.registers[number] = {kind, offset};
  }
  void restore(UnwindRules& rules, std::size_t number) const noexcept {
    if (number < kRegisters) rules.registers[number] = initial_.registers[number];
  }

  const UnwindTable& table_;
  const Word address_;
  Word location_;
  UnwindRules initial_;
  std::array<UnwindRules, 4> kept_;
  std::size_t depth_ = 0;
};

}  // namespace

// Finds the part of .eh_frame that describes how to unwind at `address`.
bool find_table(Word address, UnwindTable& table) noexcept {
  weft_eh_bases bases{};
  const auto* own = static_cast<const std::uint8_t*>(
      weft_find_unwind_table(reinterpret_cast<void*>(address), &bases));
  if (own == nullptr) return false;
  std::uint32_t length = 0;
  std::int32_t back = 0;
  std::memcpy(&length, own, 4);
  std::memcpy(&back, own + 4, 4);
  if (length == 0xFFFFFFFFU) return false;
  const std::uint8_t* common = own + 4 - back;
  std::uint32_t common_length = 0;
  std::memcpy(&common_length, common, 4);
  TableReader reader(common + 8, common + 4 + common_length);
  const std::uint8_t version = reader.byte();
  const auto* augmentation = reinterpret_cast<const char*>(reader.at());
  reader.skip(std::strlen(augmentation) + 1);
  if (version == 4) reader.skip(2);
  table.code_unit = reader.number();
  table.data_unit = reader.signed_number();
  table.return_column = version == 1 ? reader.byte() : reader.number();
  std::uint8_t encoding = 0;
  const bool has_more = *augmentation == 'z';
  if (has_more) {
    TableReader more = reader.block();
    for (const char* letter = augmentation + 1; *letter != '\0'; ++letter) {
      if (*letter == 'R') encoding = more.byte();
      if (*letter == 'L') (void)more.byte();
      if (*letter == 'P') more.skip(encoded_bytes(more.byte()));
      if (*letter == 'S') table.is_signal_frame = true;
    }
  }
  table.common = reader;
  table.own = TableReader(own + 8, own + 4 + length);
  table.own.skip(2 * encoded_bytes(encoding));
  if (has_more) (void)table.own.block();
  table.start = reinterpret_cast<Word>(bases.function);
  return table.return_column < kRegisters;
}

bool rules_at(Word address, const UnwindTable& table, UnwindRules& rules) noexcept {
  return Interpreter(table, address).run(rules);
}

}  // namespace weft::fibers
