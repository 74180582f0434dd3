#include <chrono>
#include <memory>
#include <weft/blocking_group.hpp>
#include <weft/detail/first_use.hpp>
#include <weft/detail/fork.hpp>
#include <weft/files.hpp>

namespace weft::files {

namespace {

// Never destroyed, because a call that hangs must not delay the end of the process. The child of a
// fork makes a group of its own, because calls of the parent would count as running forever.
constinit detail::FirstUse<BlockingGroup> files_group;
const detail::ForgottenInForks<files_group> forget_files_in_forks;

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
