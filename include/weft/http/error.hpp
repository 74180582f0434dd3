// The errors of a message, as std::error_code values. All calls from anywhere; they neither park,
// throw nor synchronize.
#pragma once

#include <system_error>

namespace weft::http {

enum class Errc {
  malformed = 1,    // The peer does not speak HTTP/1.1, or not properly.
  body_too_large,   // More than Limits::body_bytes.
  head_too_large,   // More than Limits::head_bytes or Limits::headers, or so many trailers.
  unexpected_end,   // The peer ended the stream in the middle of a message.
  already_started,  // The head of the answer has been sent, and cannot be changed.
  wrong_length,     // More or less has been written than Content-Length said.
  too_many_redirects,
  unsupported,  // A URL of another scheme, a redirect without a target, an unknown coding.
};

// Of Errc; its name is "weft-http". Lives as long as the process.
[[nodiscard]] const std::error_category& error_category() noexcept;

// An Errc as a std::error_code: so they compare, `error == http::Errc::malformed`.
[[nodiscard]] inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

}  // namespace weft::http

template <>
struct std::is_error_code_enum<weft::http::Errc> : std::true_type {};
