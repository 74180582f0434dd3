// The result of a call that may fail.
#pragma once

#include <system_error>

namespace weft {

// A value, or the error that ended the call. If the call's comment says so, `value` also counts
// after an error, as its progress. An error belongs to the system (std::system_category) or the
// library (weft::Errc).
// Context: plain value.
template <class T>
struct [[nodiscard]] Result {
  T value{};
  std::error_code error{};

  // Returns true if there is no error.
  [[nodiscard]] explicit operator bool() const noexcept { return !error; }
};

}  // namespace weft
