// Reports errors of HTTP messages as std::error_code values.
// Context: plain value.
#pragma once

#include <system_error>

namespace weft::http {

enum class Errc {
  // These codes and malformed_form compare equal to ErrorKind::malformed.
  malformed_url = 1,  // The URL of a call is invalid.
  malformed_call,     // A Call has a method or a header that must not be sent.
  malformed_line,     // A line has a bare CR, a bare LF or a NUL, or continues on the next line.
  malformed_start,    // The first line is not a request line, or not a status line.
  malformed_target,   // The target is neither a path nor a URL.
  malformed_host,     // The Host header is invalid, missing or repeated.
  malformed_header,   // A name is not a token, or a value has control characters.
  // Content-Length is not a number, is repeated, or is combined with Transfer-Encoding.
  malformed_length,
  malformed_coding,   // A Transfer-Encoding does not end with "chunked", or a gzip body is corrupt.
  malformed_chunk,    // The size of a chunk, or the line end after its data, is invalid.
  malformed_trailer,  // A line after the last chunk is invalid.
  truncated_head,     // The stream ended within a head.
  // A WebSocket frame or message violates the protocol, or a text message is not UTF-8.
  malformed_frame,

  body_too_large,    // The body exceeds `body_bytes` of Limits, RequestLimits or ClientOptions.
  head_too_large,    // The head or the trailers exceed a limit of Limits or ClientOptions.
  target_too_large,  // The target exceeds Limits::target_bytes.
  unexpected_end,    // The peer ended the stream before a message, or in the middle of a body.
  already_started,   // The response head has been sent and cannot be changed.
  wrong_length,      // The number of bytes written differs from Content-Length.
  too_many_redirects,
  unsupported,          // The scheme is unsupported, or the upgrade was refused or not requested.
  unsupported_version,  // The HTTP version is not 1.x.
  unsupported_method,   // The method is CONNECT, which weft's servers do not support.
  unsupported_coding,   // A Transfer-Encoding is not "chunked".
  unsupported_expectation,

  malformed_form,     // The parts of a form cannot be parsed.
  form_too_large,     // The form exceeds FormLimits or MultipartLimits.
  unsupported_form,   // The Content-Type of a body is not that of the expected form.
  message_too_large,  // The message exceeds `message_bytes` or `fragments` of WebSocketOptions.
  message_too_slow,   // The message took longer than WebSocketOptions::message.
  refused_by_proxy,   // The proxy in ClientOptions refused to open a tunnel to the server.
};

// Names a property that several values of Errc share.
enum class ErrorKind {
  malformed = 1,  // The peer violates HTTP/1.1, or the call would violate it.
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
