// The answer of a call that may fail.
#pragma once

#include <system_error>

namespace weft {

// A value, or the error that kept the call from its end. Where the call says so, `value` also
// counts after an error: how far the call came.
// An error is one of the system (std::system_category) or of the library (weft::Errc). A plain
// value.
template <class T>
struct [[nodiscard]] Result {
  T value{};
  std::error_code error{};

  // Returns true when there is no error.
  [[nodiscard]] explicit operator bool() const noexcept { return !error; }
};

}  // namespace weft
