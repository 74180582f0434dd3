// Finds the calls that parked fibers are in.
#pragma once

#include <cstddef>
#include <vector>

namespace weft::observe {

struct ParkedStack {
  const void* record = nullptr;      // The number of the fiber.
  const char* reason = "";           // Why the fiber waits.
  std::vector<const void*> returns;  // Return addresses, innermost first; may be empty.
};

// Returns all parked fibers of all runtimes, as they are at one moment. Only plain threads may call
// it. Throws std::bad_alloc, std::system_error.
[[nodiscard]] std::vector<ParkedStack> photograph_stacks();

}  // namespace weft::observe
