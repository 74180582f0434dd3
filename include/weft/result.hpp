// Holds the results of calls that may fail.
#pragma once

#include <system_error>
#include <type_traits>

namespace weft {

// Holds the value of a call, or the error that ended the call. After an error, `value` holds the
// progress of the call, if the call's documentation defines it. The error code belongs to the
// system (std::system_category or std::errc), to weft::Errc, or to another category of weft.
// Context: plain value.
template <class T>
struct [[nodiscard]] Result {
  T value{};
  std::error_code error{};

  // Returns true if there is no error.
  [[nodiscard]] explicit operator bool() const noexcept { return !error; }
};

// Holds the outcome of a call without a value; like any Result, it is true after success. It can be
// compared with codes and conditions, and converts from and to std::error_code:
//
//   if (!stream.wait_readable(1s)) stream.close();
//   if (files::write_file(path, text) == std::errc::permission_denied) path += ".new";
//   if (const std::error_code error = server.serve(listener)) return error;
//
// Context: plain value.
template <>
struct Result<void> {
  std::error_code error{};

  // Makes a successful result.
  Result() noexcept = default;
  // Makes a failed result with the error `code`, or a successful result if the value of `code` is
  // 0.
  Result(const std::error_code& code) noexcept : error(code) {}  // NOLINT: an error is a result.
  // Makes a failed result with an error code such as an Errc.
  template <class Code>
  requires std::is_error_code_enum_v<Code> Result(Code code)
  noexcept  // NOLINT(google-explicit-constructor): as above.
      : error(code) {}

  // Returns true if there is no error.
  [[nodiscard]] explicit operator bool() const noexcept { return !error; }
  // Returns the error, for callers that store errors. An `if` calls operator bool() instead.
  operator std::error_code() const noexcept { return error; }  // NOLINT: on purpose.

  [[nodiscard]] friend bool operator==(const Result& result, const std::error_code& code) noexcept {
    return result.error == code;
  }
  [[nodiscard]] friend bool operator==(const Result& result,
                                       const std::error_condition& condition) noexcept {
    return result.error == condition;
  }
};

}  // namespace weft
