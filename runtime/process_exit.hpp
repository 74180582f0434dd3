// Whether the process is ending.
#pragma once

namespace weft::runtime {

// Returns true when exit() is among the calling functions: so who destroys what is static.
[[nodiscard]] bool called_by_exit() noexcept;

}  // namespace weft::runtime
