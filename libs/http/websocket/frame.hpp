// Parses and makes WebSocket frames (RFC 6455, 5.2).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::http {

enum class Opcode : std::uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10,
};

namespace close_code {
inline constexpr std::uint16_t kNormal = 1000;
inline constexpr std::uint16_t kGoingAway = 1001;
inline constexpr std::uint16_t kProtocolError = 1002;
inline constexpr std::uint16_t kNone = 1005;  // Reported if a close frame has no code; never sent.
inline constexpr std::uint16_t kBadText = 1007;
inline constexpr std::uint16_t kRefused = 1008;
inline constexpr std::uint16_t kTooLarge = 1009;
inline constexpr std::uint16_t kFailed = 1011;
}  // namespace close_code

using Mask = std::array<char, 4>;

// Describes the header of a frame, which precedes the payload.
struct FrameHeader {
  enum class State : std::uint8_t { complete, incomplete, refused };

  bool is_final = true;
  bool is_compressed = false;
  bool is_masked = false;
  Opcode opcode = Opcode::text;
  Mask mask = {};
  std::uint64_t size = 0;  // The size of the payload in bytes.

  [[nodiscard]] bool is_control() const noexcept { return opcode >= Opcode::close; }
  // Parses the header at the beginning of `bytes`, and removes a complete header from `bytes`.
  // Refuses a header as soon as it violates a rule; does not check rules that involve other frames.
  [[nodiscard]] State parse(std::string_view& bytes) noexcept;
};

inline constexpr std::size_t kControlBytes = 125;  // The largest payload of a control frame.

// Appends a complete, final frame. A frame from a client is masked.
void append_frame(Opcode opcode, bool is_compressed, std::string_view payload,
                  const std::optional<Mask>& mask, std::string& out);
// Applies or removes the mask. `data` is the part of the payload that begins at `offset`.
void apply_mask(const Mask& mask, std::uint64_t offset, char* data, std::size_t size) noexcept;
// Returns whether RFC 6455, 7.4, or the registry of close codes allows this code in a close frame.
[[nodiscard]] bool may_be_sent(std::uint16_t code) noexcept;
// Returns the payload of a close frame.
[[nodiscard]] std::string make_close(std::uint16_t code, std::string_view reason);

}  // namespace weft::http
