// Removes a directory with all that is below it.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/descriptor.hpp>

#include "base/thread.hpp"
#include "files/names.hpp"
#include "io/kernel.hpp"

namespace weft::files {

using io::CallResult;
using io::result_of;

namespace {

// Each directory is opened by its name in its parent directory, so that a link in its place is
// refused. Each level holds a descriptor. There is no recursion, because a tree may be too deep for
// a stack.
class TreeRemoval {
 public:
  std::error_code run(const std::string& path) {
    std::error_code error = take(path);
    while (!error && !levels_.empty()) {
      errno = 0;  // errno stays 0 at the end of the directory.
      const dirent* const entry = ::readdir(levels_.back().directory.get());
      const int failed = base::last_error();
      if (entry == nullptr) {
        error = failed != 0 ? std::error_code(failed, std::system_category()) : leave();
      } else if (const std::string_view name(entry->d_name); name != "." && name != "..") {
        error = take(entry->d_name);
      }
    }
    return error;
  }

 private:
  struct CloseLevel {
    void operator()(DIR* directory) const noexcept { ::closedir(directory); }
  };
  struct Level {
    std::string name;
    std::unique_ptr<DIR, CloseLevel> directory;
  };

  [[nodiscard]] int innermost() const noexcept {
    return levels_.empty() ? AT_FDCWD : ::dirfd(levels_.back().directory.get());
  }

  // Removes an entry of the innermost directory, or enters it if it is a directory.
  std::error_code take(std::string name) {
    const int above = innermost();
    const CallResult unlinked = result_of([&] { return ::unlinkat(above, name.c_str(), 0); });
    if (unlinked.error == 0 || unlinked.error == ENOENT) return {};
    if (unlinked.error != EISDIR && unlinked.error != EPERM) return unlinked.code();
    // With a slash at the end O_NOFOLLOW would follow a link that has replaced the directory.
    while (name.size() > 1 && name.back() == '/') name.pop_back();
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const CallResult opened = result_of([&] { return ::openat(above, name.c_str(), kFlags); });
    if (opened.error == ENOENT) return {};
    // The entry is a file, and removing it is not permitted.
    if (opened.error == ENOTDIR) return unlinked.code();
    if (opened.error != 0) return opened.code();
    Descriptor own(static_cast<int>(opened.value));
    std::unique_ptr<DIR, CloseLevel> directory(::fdopendir(own.get()));
    if (directory == nullptr) return {base::last_error(), std::system_category()};
    (void)own.release();
    levels_.push_back({std::move(name), std::move(directory)});
    return {};
  }

  // Removes the innermost directory, which has no entries any more.
  std::error_code leave() {
    const Level done = std::move(levels_.back());
    levels_.pop_back();
    CallResult removed =
        result_of([&] { return ::unlinkat(innermost(), done.name.c_str(), AT_REMOVEDIR); });
    if (removed.error == ENOENT) return {};
    if (removed.error == EEXIST) removed.error = ENOTEMPTY;
    return removed.code();
  }

  std::vector<Level> levels_;
};

std::error_code remove_simulated(io::FileKernel& files, const std::string& path) {
  std::vector<std::string> paths{path};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::vector<io::DirectoryEntry> entries;
    const CallResult listed = files.list(paths[i], entries);
    if (listed.error == ENOTDIR || listed.error == ENOENT) continue;
    if (listed.error != 0) return listed.code();
    for (const io::DirectoryEntry& entry : entries) paths.push_back(paths[i] + '/' + entry.name);
  }
  for (auto at = paths.rbegin(); at != paths.rend(); ++at) {
    const CallResult removed = files.remove(*at);
    if (removed.error != 0 && removed.error != ENOENT) return removed.code();
  }
  return {};
}

}  // namespace

std::error_code remove_tree(const std::string& path) {
  if (io::FileKernel* files = io::simulated_files()) [[unlikely]]
    return remove_simulated(*files, path);
  return TreeRemoval().run(path);
}

}  // namespace weft::files
