// The rules for a head, beyond its syntax, so that everybody on its way agrees where it ends.
#pragma once

#include <string_view>

namespace weft::http {

struct Head;

[[nodiscard]] bool is_token(std::string_view text) noexcept;

// Looks at a request line: a token, one blank, a target, one blank, HTTP/1.0 or HTTP/1.1. Sets the
// method and the version. Returns 0, or 400, 501 for a method that is not served, 505 for another
// version.
[[nodiscard]] int check_request_line(std::string_view line, Head& head) noexcept;

// Looks at target and headers, and sets what Head says about the body and the connection. Returns
// 0, or the status to answer with: 400, 417, 501.
[[nodiscard]] int apply_request_rules(Head& head) noexcept;
// The same for a response; 502 if it cannot be trusted.
[[nodiscard]] int apply_response_rules(Head& head) noexcept;

}  // namespace weft::http
