// Determines whether the process is ending.
#pragma once

namespace weft::runtime {

// Returns true if exit() is among the calling functions, and so destroys static objects.
[[nodiscard]] bool called_by_exit() noexcept;

}  // namespace weft::runtime
