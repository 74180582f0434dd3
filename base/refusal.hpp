// Describes in words what the system has refused.
#pragma once

#include <string>
#include <system_error>

namespace weft::base {

// Returns an error for a call that the system has refused: `weft: a Runtime cannot start the thread
// for worker 3; the limit may be ulimit -u (RLIMIT_NPROC), ...: Resource temporarily unavailable`.
// `what` is the part of the text after "weft: "; `code` determines the limits that the text names.
// Any thread may call it. Throws std::bad_alloc.
[[nodiscard]] std::system_error refusal(std::error_code code, const std::string& what);

// Returns the limits that can cause a refusal with this code; empty if no limit can.
[[nodiscard]] const char* limits_behind(std::error_code code) noexcept;

}  // namespace weft::base
