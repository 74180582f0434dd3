#include "files/regular.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/kernel.hpp"

namespace weft::files {

using io::result_of;

std::error_code check_path(std::string_view path) noexcept {
  if (path.find('\0') == std::string_view::npos) return {};
  return std::make_error_code(std::errc::invalid_argument);
}

[[gnu::noinline]] CallResult open_waiting(const std::string& path, int flags,
                                          unsigned mode) noexcept {
  if (io::FileKernel* files = io::simulated_files()) [[unlikely]]
    return files->open(path, flags, mode);
  CallResult opened = result_of([&] { return ::open(path.c_str(), flags, mode); });
  // Opening a pipe without a reader, or a socket, returns this error; opening a regular file never
  // does.
  if (opened.error == ENXIO) opened.error = EOPNOTSUPP;
  return opened;
}

[[gnu::noinline]] CallResult look_at(int file, struct stat& found) noexcept {
  if (io::FileKernel* files = io::simulated_files(file)) [[unlikely]]
    return files->status(file, found);
  return result_of([&] { return ::fstat(file, &found); });
}

[[gnu::noinline]] CallResult sync_data(int file) noexcept {
  if (io::FileKernel* files = io::simulated_files(file)) [[unlikely]]
    return files->sync(file);
  return result_of([&] { return ::fdatasync(file); });
}

std::error_code check_mode(unsigned mode) noexcept {
  if (S_ISREG(mode)) return {};
  return std::make_error_code(S_ISDIR(mode) ? std::errc::is_a_directory
                                            : std::errc::operation_not_supported);
}

std::error_code check_kind(int file) noexcept {
  struct stat found {};
  const CallResult result = look_at(file, found);
  if (result.error != 0) return result.code();
  return check_mode(found.st_mode);
}

}  // namespace weft::files
