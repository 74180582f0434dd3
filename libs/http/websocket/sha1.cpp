#include "libs/http/websocket/sha1.hpp"

#include <bit>
#include <cstddef>

namespace weft::http {

namespace {

constexpr std::size_t kBlock = 64;

using Sha1State = std::array<std::uint32_t, 5>;

std::uint32_t word_at(const std::string& text, std::size_t at) noexcept {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) word = word << 8U | static_cast<unsigned char>(text[at + i]);
  return word;
}

// Returns the sum of a round's logical function and its constant (FIPS 180-4, 4.1.1 and 4.2.1).
std::uint32_t mix(std::size_t round, std::uint32_t b, std::uint32_t c, std::uint32_t d) noexcept {
  if (round < 20) return ((b & c) | (~b & d)) + 0x5a827999;
  if (round < 40) return (b ^ c ^ d) + 0x6ed9eba1;
  if (round < 60) return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
  return (b ^ c ^ d) + 0xca62c1d6;
}

void add_block(const std::string& text, std::size_t at, Sha1State& state) noexcept {
  std::array<std::uint32_t, 80> words{};
  for (std::size_t i = 0; i < 16; ++i) words[i] = word_at(text, at + 4 * i);
  for (std::size_t i = 16; i < words.size(); ++i) {
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  Sha1State next = state;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t sum =
        std::rotl(next[0], 5) + mix(i, next[1], next[2], next[3]) + next[4] + words[i];
    next = {sum, next[0], std::rotl(next[1], 30), next[2], next[3]};
  }
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += next[i];
}

}  // namespace

std::array<std::uint8_t, 20> sha1(std::string text) {
  const std::uint64_t bits = std::uint64_t{8} * text.size();
  text += '\x80';
  while (text.size() % kBlock != kBlock - 8) text += '\0';
  for (unsigned shift = 64; shift > 0; shift -= 8) text += static_cast<char>(bits >> (shift - 8));
  Sha1State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  for (std::size_t at = 0; at < text.size(); at += kBlock) add_block(text, at, state);
  std::array<std::uint8_t, 20> digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

}  // namespace weft::http
