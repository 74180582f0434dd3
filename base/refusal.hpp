// What the system has refused, in words.
#pragma once

#include <string>
#include <system_error>

namespace weft::base {

// For a call that the system has refused: `weft: a Runtime gets no thread for worker 3; what
// refuses it is ulimit -u (RLIMIT_NPROC), ...: Resource temporarily unavailable`. `what` is the
// part after "weft: "; the limits follow from the code. Any thread; throws std::bad_alloc.
[[nodiscard]] std::system_error refusal(std::error_code code, const std::string& what);

// The limits that a refusal with such a code can mean; empty: none.
[[nodiscard]] const char* limits_behind(std::error_code code) noexcept;

}  // namespace weft::base
