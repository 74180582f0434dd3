// Reports errors of HTTP messages as std::error_code values.
// Context: plain value.
#pragma once

#include <system_error>

namespace weft::http {

enum class Errc {
  // These codes and malformed_form compare equal to ErrorKind::malformed.
  malformed_url = 1,  // A URL is invalid, for example the URL of a Call.
  malformed_call,     // A Call or WebSocketCall has a method, header or body that must not be sent.
  malformed_line,     // A line has a bare CR or LF or a NUL, is folded, or is a second blank line.
  malformed_start,    // The first line is not a valid request line or status line.
  malformed_target,   // The target is neither a valid path nor a valid URL.
  malformed_host,     // The Host header is invalid, repeated or, in HTTP/1.1, missing.
  malformed_header,   // A name is not a token, or a value has control characters.
  // Content-Length is invalid, occurs twice, or comes with Transfer-Encoding. In a response, it may
  // occur twice with the same value.
  malformed_length,
  malformed_coding,   // Transfer-Encoding is invalid, repeated or in HTTP/1.0, or gzip is corrupt.
  malformed_chunk,    // A size line is invalid or wastes bytes, or no line end follows the data.
  malformed_trailer,  // A line after the last chunk is invalid.
  truncated_head,     // The stream ended within a head.
  malformed_frame,    // A WebSocket frame or message violates the protocol, or text is not UTF-8.

  body_too_large,    // The body exceeds `body_bytes` of Limits, RequestLimits or ClientOptions.
  head_too_large,    // The head or trailers exceed a limit, such as one of Limits or ClientOptions.
  target_too_large,  // The target exceeds Limits::target_bytes, or its line is too long.
  unexpected_end,    // The stream ended before a response, within a body, or before a close frame.
  already_started,   // The response has already begun or ended, or upgrade() has been called.
  wrong_length,      // The body's size differs from Content-Length, or a file ended early.
  too_many_redirects,
  unsupported,          // A scheme or call is unsupported, or an upgrade is refused or impossible.
  unsupported_version,  // The HTTP version is not 1.x.
  unsupported_method,   // The method is CONNECT, which weft's servers do not support.
  unsupported_coding,   // A Transfer-Encoding is not "chunked".
  unsupported_expectation,

  malformed_form,     // The parts of a form cannot be parsed.
  form_too_large,     // The form exceeds FormLimits or MultipartLimits, or a part is too large.
  unsupported_form,   // The Content-Type is not that of the form, or has no valid boundary.
  message_too_large,  // The message exceeds `message_bytes` or `fragments` of WebSocketOptions.
  message_too_slow,   // The message took longer than WebSocketOptions::message.
  refused_by_proxy,   // The proxy in ClientOptions refused to open a tunnel to the server.
};

// Names a property that several values of Errc share.
enum class ErrorKind {
  malformed = 1,  // A message or an argument violates the rules of HTTP, WebSocket or forms.
};

// Returns the category of Errc, named "weft-http". The category lives as long as the process.
[[nodiscard]] const std::error_category& error_category() noexcept;
// Returns the category of ErrorKind, named "weft-http-kind".
[[nodiscard]] const std::error_category& kind_category() noexcept;

// Converts an Errc, for comparisons such as `error == http::Errc::malformed_chunk`.
[[nodiscard]] inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}
// Converts an ErrorKind, for comparisons such as `error == http::ErrorKind::malformed`.
[[nodiscard]] inline std::error_condition make_error_condition(ErrorKind kind) noexcept {
  return {static_cast<int>(kind), kind_category()};
}

}  // namespace weft::http

template <>
struct std::is_error_code_enum<weft::http::Errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<weft::http::ErrorKind> : std::true_type {};
