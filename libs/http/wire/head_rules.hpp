// The rules for a head, beyond its syntax, so that all programs on its way agree where it ends.
#pragma once

#include <optional>
#include <string_view>
#include <system_error>
#include <weft/http/error.hpp>

namespace weft::http {

struct Head;
// What is wrong with a head; nothing, if it is right.
using Fault = std::optional<Errc>;

[[nodiscard]] bool is_token(std::string_view text) noexcept;

// Takes the first line of a request apart: a method, which is any token, one blank, a target, one
// blank, HTTP/1.x. A version beyond 1.1 counts as 1.1 (RFC 9110, 2.5).
[[nodiscard]] Fault parse_request_line(std::string_view line, Head& head) noexcept;
// The same for the first line of a response: HTTP/1.x, one blank, three digits, and perhaps a blank
// and a text.
[[nodiscard]] Fault parse_status_line(std::string_view line, Head& head) noexcept;

// Looks at target and headers, and sets what Head says about the body and the connection.
[[nodiscard]] Fault apply_request_rules(Head& head) noexcept;
// The same for a response.
[[nodiscard]] Fault apply_response_rules(Head& head) noexcept;

// What a server answers to a request that has failed so.
[[nodiscard]] int status_of(std::error_code error) noexcept;

}  // namespace weft::http
