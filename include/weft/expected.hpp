// Converts between Result and std::expected, if the compiler has std::expected (C++23).
#pragma once

#include <version>

#if defined(__cpp_lib_expected)
#include <expected>
#include <system_error>
#include <type_traits>
#include <utility>
#include <weft/result.hpp>

namespace weft {

// Converts a Result to a std::expected, for use with and_then() and similar functions. A value that
// accompanies an error is dropped.
// Context: plain value. Throws: whatever the move constructor of T throws.
template <class T>
[[nodiscard]] std::expected<T, std::error_code> to_expected(Result<T> result) {
  if (result.error) return std::unexpected(result.error);
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return std::move(result.value);
  }
}

// Converts a std::expected to a Result. If `expected` holds an error, the Result's value is T().
// Context: plain value. Throws: whatever T() and the move constructor of T throw.
template <class T>
[[nodiscard]] Result<T> to_result(std::expected<T, std::error_code> expected) {
  if constexpr (std::is_void_v<T>) {
    return expected ? std::error_code() : expected.error();
  } else {
    if (!expected) return {.error = expected.error()};
    return {.value = std::move(*expected)};
  }
}

}  // namespace weft
#endif
