#include <chrono>
#include <memory>
#include <weft/blocking_group.hpp>
#include <weft/detail/first_use.hpp>
#include <weft/files.hpp>

namespace weft::files {

namespace {

// Never destroyed, because a call that hangs must not delay the end of the process.
constinit detail::FirstUse<BlockingGroup> files_group;

}  // namespace

BlockingGroup& file_group() {
  return files_group.get([] {
    return std::make_unique<BlockingGroup>(
        BlockingGroupOptions{.name = "files",
                             .max_threads = 16,
                             .max_waiting = 4096,
                             .idle_time = std::chrono::milliseconds(100)});
  });
}

}  // namespace weft::files
