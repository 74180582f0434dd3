// Parses the head of a message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <weft/http/header.hpp>
#include <weft/http/limits.hpp>

#include "libs/http/wire/head_rules.hpp"

namespace weft::http {

// Specifies how a reader finds the end of a body.
enum class Framing : std::uint8_t { none, length, chunked, until_close };

// Holds a parsed head. All strings refer to the buffer that was parsed. The array `own` is not
// initialized, because most requests use few of its elements.
struct Head {
  std::string_view method;  // Empty in a response.
  std::string_view target;  // Empty in a response.
  int status = 0;           // 0 in a request.
  int minor_version = 1;
  std::size_t count = 0;
  union {
    std::array<Header, Limits::kMaxHeaders> own;
  };
  std::unique_ptr<Header[]> larger;  // If null, `own` is used.

  // The functions in head_rules.hpp set the following fields.
  Framing framing = Framing::none;
  std::uint64_t content_length = 0;
  bool has_length = false;
  bool keep_alive = true;
  bool expects_continue = false;
  bool asks_for_upgrade = false;
  std::string_view host;

  Head() noexcept {}
  ~Head() {}  // NOLINT(modernize-use-equals-default): the union needs no destruction.
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  void clear() noexcept {
    method = target = host = {};
    status = 0;
    minor_version = 1;
    count = 0;
    framing = Framing::none;
    content_length = 0;
    has_length = expects_continue = asks_for_upgrade = false;
    keep_alive = true;
  }
  [[nodiscard]] Header* storage() noexcept { return larger ? larger.get() : own.data(); }
  [[nodiscard]] std::span<const Header> headers() const noexcept {
    return {larger ? larger.get() : own.data(), count};
  }
  // Makes room for `headers` headers. Must be called before a parse that may find more than
  // Limits::kMaxHeaders headers.
  void make_room(std::size_t headers) { larger = std::make_unique<Header[]>(headers); }
};

// Parses a complete request head, from its first line to its blank line, after HeadLines has
// validated its lines. Returns Errc::head_too_large if there are more than `max_headers` headers.
// `head` must have room for `max_headers` headers.
[[nodiscard]] Fault parse_request_head(std::string_view text, std::size_t max_headers,
                                       Head& head) noexcept;
// Parses a complete response head in the same way.
[[nodiscard]] Fault parse_response_head(std::string_view text, std::size_t max_headers,
                                        Head& head) noexcept;

}  // namespace weft::http
