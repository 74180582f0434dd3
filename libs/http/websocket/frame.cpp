#include "libs/http/websocket/frame.hpp"

#include <algorithm>
#include <cstring>

namespace weft::http {

namespace {

constexpr unsigned kFinal = 0x80;
constexpr unsigned kCompressed = 0x40;
constexpr unsigned kReserved = 0x30;
constexpr unsigned kMasked = 0x80;
constexpr unsigned kTwoBytes = 126;
constexpr unsigned kEightBytes = 127;

unsigned byte_at(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<unsigned char>(bytes[at]);
}

bool is_opcode(unsigned value) noexcept { return value <= 2 || (value >= 8 && value <= 10); }

std::size_t size_of_length(unsigned length) noexcept {
  return length == kEightBytes ? 8 : length == kTwoBytes ? 2 : 0;
}

void append_number(std::uint64_t value, std::size_t bytes, std::string& out) {
  while (bytes > 0) out += static_cast<char>(value >> (8 * --bytes));
}

}  // namespace

FrameHeader::State FrameHeader::parse(std::string_view& bytes) noexcept {
  if (bytes.empty()) return State::incomplete;
  const unsigned first = byte_at(bytes, 0);
  if ((first & kReserved) != 0 || !is_opcode(first & 0xf)) return State::refused;
  opcode = static_cast<Opcode>(first & 0xf);
  is_final = (first & kFinal) != 0;
  is_compressed = (first & kCompressed) != 0;
  if (is_control() && (!is_final || is_compressed)) return State::refused;
  if (bytes.size() < 2) return State::incomplete;
  const unsigned second = byte_at(bytes, 1);
  is_masked = (second & kMasked) != 0;
  const unsigned length = second & ~kMasked;
  if (is_control() && length > kControlBytes) return State::refused;
  const std::size_t longer = size_of_length(length);
  const std::size_t all = 2 + longer + (is_masked ? mask.size() : 0);
  if (bytes.size() < all) return State::incomplete;
  size = longer == 0 ? length : 0;
  for (std::size_t i = 0; i < longer; ++i) size = size << 8U | byte_at(bytes, 2 + i);
  // The protocol requires the shortest form of a size, and the largest size has 63 bits.
  const std::uint64_t least = longer == 2 ? kTwoBytes : longer == 8 ? 0x10000 : 0;
  if (size < least || size >> 63U != 0) return State::refused;
  if (is_masked) std::copy_n(bytes.data() + 2 + longer, mask.size(), mask.begin());
  bytes.remove_prefix(all);
  return State::complete;
}

void append_frame(Opcode opcode, bool is_compressed, std::string_view payload,
                  const std::optional<Mask>& mask, std::string& out) {
  out +=
      static_cast<char>(kFinal | (is_compressed ? kCompressed : 0) | static_cast<unsigned>(opcode));
  const std::size_t size = payload.size();
  const unsigned masked = mask ? kMasked : 0;
  if (size < kTwoBytes) {
    out += static_cast<char>(masked | size);
  } else {
    const bool is_short = size < 0x10000;
    out += static_cast<char>(masked | (is_short ? kTwoBytes : kEightBytes));
    append_number(size, is_short ? 2 : 8, out);
  }
  if (mask) out.append(mask->data(), mask->size());
  const std::size_t begin = out.size();
  out += payload;
  if (mask) apply_mask(*mask, 0, out.data() + begin, size);
}

void apply_mask(const Mask& mask, std::uint64_t offset, char* data, std::size_t size) noexcept {
  std::array<char, 8> repeated{};
  for (std::size_t i = 0; i < repeated.size(); ++i) repeated[i] = mask[(offset + i) % 4];
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, repeated.data(), sizeof pattern);
  std::size_t i = 0;
  for (; i + sizeof pattern <= size; i += sizeof pattern) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + i, sizeof word);
    word ^= pattern;
    std::memcpy(data + i, &word, sizeof word);
  }
  for (; i < size; ++i) data[i] = static_cast<char>(data[i] ^ repeated[i % 8]);
}

bool may_be_sent(std::uint16_t code) noexcept {
  if (code >= 3000) return code < 5000;
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
}

std::string make_close(std::uint16_t code, std::string_view reason) {
  std::string payload;
  if (code != close_code::kNone) append_number(code, 2, payload);
  return payload.append(reason);
}

}  // namespace weft::http
