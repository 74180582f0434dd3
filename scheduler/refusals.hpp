// Throws the errors that a spawn reports. The build optimizes the source file for size.
#pragma once

#include <cstddef>

namespace weft::scheduler {

// `what` names the call that needs a runtime.
[[noreturn]] void throw_no_runtime(const char* what);
[[noreturn]] void throw_stack_size(std::size_t stack_size);

}  // namespace weft::scheduler
