#include "files/regular.hpp"

#include <sys/stat.h>

#include <cerrno>

namespace weft::files {

using io::result_of;

std::error_code check_path(std::string_view path) noexcept {
  if (path.find('\0') == std::string_view::npos) return {};
  return std::make_error_code(std::errc::invalid_argument);
}

[[gnu::noinline]] CallResult open_waiting(const std::string& path, int flags,
                                          unsigned mode) noexcept {
  CallResult opened = result_of([&] { return ::open(path.c_str(), flags, mode); });
  // A pipe that nobody reads, or a socket: no regular file gives this.
  if (opened.error == ENXIO) opened.error = EOPNOTSUPP;
  return opened;
}

std::error_code check_mode(unsigned mode) noexcept {
  if (S_ISREG(mode)) return {};
  return std::make_error_code(S_ISDIR(mode) ? std::errc::is_a_directory
                                            : std::errc::operation_not_supported);
}

[[gnu::noinline]] std::error_code check_kind(int file) noexcept {
  struct stat found {};
  const CallResult result = result_of([&] { return ::fstat(file, &found); });
  if (result.error != 0) return result.code();
  return check_mode(found.st_mode);
}

}  // namespace weft::files
