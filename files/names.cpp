#include "files/names.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "io/kernel.hpp"

namespace weft::files {

using io::CallResult;
using io::result_of;

namespace {

// Some file systems return another error number for a directory with entries.
CallResult with_usual_number(CallResult result) noexcept {
  if (result.error == EEXIST) result.error = ENOTEMPTY;
  return result;
}

// For a directory, Linux returns the first error number; POSIX specifies the second.
bool may_be_directory(const CallResult& unlinked) noexcept {
  return unlinked.error == EISDIR || unlinked.error == EPERM;
}

}  // namespace

[[gnu::noinline]] CallResult look_at_path(const std::string& path, struct stat& found) noexcept {
  if (io::FileKernel* files = io::simulated_files()) [[unlikely]]
    return files->status_of(path, found);
  return result_of([&] { return ::stat(path.c_str(), &found); });
}

[[gnu::noinline]] CallResult look_at_link(const std::string& path, struct stat& found) noexcept {
  if (io::FileKernel* files = io::simulated_files()) [[unlikely]]
    return files->status_of(path, found);  // The simulated file system has no links.
  return result_of([&] { return ::lstat(path.c_str(), &found); });
}

[[gnu::noinline]] CallResult rename_path(const std::string& from, const std::string& to) noexcept {
  if (io::FileKernel* files = io::simulated_files()) [[unlikely]]
    return files->rename(from, to);
  return with_usual_number(result_of([&] { return ::rename(from.c_str(), to.c_str()); }));
}

[[gnu::noinline]] CallResult make_directory(const std::string& path, mode_t mode) noexcept {
  if (io::FileKernel* files = io::simulated_files()) [[unlikely]]
    return files->make_directory(path, mode);
  return result_of([&] { return ::mkdir(path.c_str(), mode); });
}

[[gnu::noinline]] CallResult remove_path(const std::string& path) noexcept {
  if (io::FileKernel* files = io::simulated_files()) [[unlikely]]
    return files->remove(path);
  const CallResult unlinked = result_of([&] { return ::unlink(path.c_str()); });
  if (!may_be_directory(unlinked)) return unlinked;
  const CallResult removed = result_of([&] { return ::rmdir(path.c_str()); });
  // The path is a file, and removing it is not permitted.
  return removed.error == ENOTDIR ? unlinked : with_usual_number(removed);
}

[[gnu::noinline]] void clean_up(const std::string& path) noexcept {
  if (io::FileKernel* files = io::simulated_files()) [[unlikely]] {
    files->clean_up(path);
  } else {
    (void)remove_path(path);
  }
}

}  // namespace weft::files
