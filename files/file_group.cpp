#include <chrono>
#include <weft/blocking_group.hpp>
#include <weft/files.hpp>

namespace weft::files {

BlockingGroup& file_group() {
  // It is never destroyed, because a call that hangs must not delay the end of the process.
  static auto* const group = new BlockingGroup({.name = "files",
                                                .max_threads = 16,
                                                .max_waiting = 4096,
                                                .idle_time = std::chrono::milliseconds(100)});
  return *group;
}

}  // namespace weft::files
