// The calls that parked fibers are in.
#pragma once

#include <cstddef>
#include <vector>

namespace weft::observe {

struct ParkedStack {
  const void* record = nullptr;      // The fiber's.
  const char* reason = "";           // Its reason to wait.
  std::vector<const void*> returns;  // Return addresses, innermost first; may be empty.
};

// Of all parked fibers of all runtimes, at one moment. On a plain thread. Throws std::bad_alloc,
// std::system_error.
[[nodiscard]] std::vector<ParkedStack> photograph_stacks();

}  // namespace weft::observe
