// The errors of a message, as std::error_code values.
// Context: plain value.
#pragma once

#include <system_error>

namespace weft::http {

enum class Errc {
  // What a peer sent, or a caller was to send, breaks the rules: `error == ErrorKind::malformed`.
  malformed_url = 1,  // A call's URL.
  malformed_call,     // A method or a header of a Call that must not be sent.
  malformed_line,     // A bare CR or LF, a NUL, or a line that goes on in the next one.
  malformed_start,    // The first line is none of a request, or of an answer.
  malformed_target,   // No path, no URL.
  malformed_host,     // A Host that cannot be one; none, or several of them.
  malformed_header,   // A name that is no token, a value with control characters.
  malformed_length,   // A Content-Length that is no number; several, or with Transfer-Encoding.
  malformed_coding,   // A Transfer-Encoding that does not end with "chunked".
  malformed_chunk,    // The size of a chunk, or the line's end behind its data.
  malformed_trailer,  // A line behind the last chunk.
  truncated_head,     // The stream ended within a head.
  malformed_frame,    // A WebSocket's frame or message that breaks its rules; a text not in UTF-8.

  body_too_large,    // More than Limits::body_bytes.
  head_too_large,    // More than Limits::head_bytes or Limits::headers, or as many trailers.
  target_too_large,  // More than Limits::target_bytes.
  unexpected_end,    // The peer ended the stream before a message, or in the middle of its body.
  already_started,   // The head of the answer has been sent, and cannot be changed.
  wrong_length,      // More or less has been written than Content-Length said.
  too_many_redirects,
  unsupported,          // A URL of another scheme, an upgrade that was not asked for.
  unsupported_version,  // HTTP, but neither 1.1 nor another 1.
  unsupported_method,   // CONNECT, at a server.
  unsupported_coding,   // A Transfer-Encoding besides "chunked".
  unsupported_expectation,

  malformed_form,     // A form whose parts cannot be taken apart.
  form_too_large,     // More than FormLimits or MultipartLimits allow.
  unsupported_form,   // A body whose Content-Type is of no form that is read so.
  message_too_large,  // More than WebSocketOptions::message_bytes or fragments.
};

// The common property of several of these.
enum class ErrorKind {
  malformed = 1,  // The peer does not speak HTTP/1.1, or not properly; or the call would not.
};

// Returns the category of Errc, named "weft-http". It lives as long as the process.
[[nodiscard]] const std::error_category& error_category() noexcept;
// Returns the category of ErrorKind, named "weft-http-kind".
[[nodiscard]] const std::error_category& kind_category() noexcept;

// Converts an Errc, so that codes compare: `error == http::Errc::malformed_chunk`.
[[nodiscard]] inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}
// Converts an ErrorKind: `error == http::ErrorKind::malformed`.
[[nodiscard]] inline std::error_condition make_error_condition(ErrorKind kind) noexcept {
  return {static_cast<int>(kind), kind_category()};
}

}  // namespace weft::http

template <>
struct std::is_error_code_enum<weft::http::Errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<weft::http::ErrorKind> : std::true_type {};
