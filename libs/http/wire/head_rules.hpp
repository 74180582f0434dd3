// Checks a head against rules that go beyond its syntax. These rules ensure that all programs that
// forward or receive the message agree on where it ends.
#pragma once

#include <optional>
#include <string_view>
#include <system_error>
#include <weft/http/error.hpp>

namespace weft::http {

struct Head;
// The error in a head; empty if the head is valid.
using Fault = std::optional<Errc>;

[[nodiscard]] bool is_token(std::string_view text) noexcept;

// Parses the first line of a request: a method (any token), one space, a target, one space,
// HTTP/1.x. A version above 1.1 is treated as 1.1 (RFC 9110, 2.5).
[[nodiscard]] Fault parse_request_line(std::string_view line, Head& head) noexcept;
// Parses the first line of a response: HTTP/1.x, one space, three digits, and optionally a space
// and a reason phrase.
[[nodiscard]] Fault parse_status_line(std::string_view line, Head& head) noexcept;

// Checks the target and the headers, and sets the fields of Head that describe the body and the
// connection.
[[nodiscard]] Fault apply_request_rules(Head& head) noexcept;
// Checks the headers of a response, and sets the body and connection fields of Head.
[[nodiscard]] Fault apply_response_rules(Head& head) noexcept;

// Returns the status with which a server answers a request that failed with `error`.
[[nodiscard]] int status_of(std::error_code error) noexcept;

}  // namespace weft::http
