// Reports changes to files and directories as they happen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/io.hpp>
#include <weft/result.hpp>
#include <weft/until.hpp>

namespace weft::files {

enum class ChangeKind : std::uint8_t {
  created,   // An entry appeared in a watched directory, or was moved into it.
  removed,   // An entry was moved away or removed, or a watched path moved or lost its last link.
  modified,  // A file was written to or truncated.
  closed,    // A file that was open for writing was closed, so it may be complete.
  lost,      // The system dropped changes, so the caller must check everything again.
};

struct Change {
  // The path given to add(), followed by a slash and the entry's name if the change concerns an
  // entry. Empty for ChangeKind::lost.
  std::string path;
  ChangeKind kind = ChangeKind::lost;
};

// Watches files and directories with inotify. Directories below a watched directory are not
// watched. If a file may be replaced, for example by replace_file(), watch its directory.
// Context: fibers and plain threads, one caller at a time, except for close(). next() parks.
// Errors: Errc::no_runtime, closed; system errors, such as no_space_on_device or
// too_many_files_open if an fs.inotify limit is reached; operation_not_supported in a simulation.
// Throws: std::bad_alloc.
class ChangeWatch {
 public:
  ChangeWatch() noexcept = default;

  // Opens a ChangeWatch that watches no path yet.
  static Result<ChangeWatch> open();

  // Watches a path. A second add() of the path also watches the file that the path then names. If
  // two paths name one file, next() reports its changes only for the path that was added last. The
  // call may block the worker while the kernel reads directories from a disk. Errors: also
  // no_such_file_or_directory, permission_denied; invalid_argument if `path` has a zero byte.
  [[nodiscard]] Result<void> add(std::string path);
  // Stops watching what was last added as `path`. next() may still return earlier changes.
  // Errors: also invalid_argument if `path` is not watched.
  [[nodiscard]] Result<void> remove(const std::string& path);
  // Returns the next change; changes come in the order in which they happened.
  // Errors: also Errc::timed_out, cancelled.
  Result<Change> next(const Until& until = Until::ambient());
  // Makes next() first return all changes that it has already read, and then Errc::closed.
  void close() noexcept { watch_.close(); }

 private:
  explicit ChangeWatch(io::Watch watch) noexcept : watch_(std::move(watch)) {}
  std::error_code fill(const Until& until);

  io::Watch watch_;
  std::vector<std::pair<int, std::string>> paths_;  // The watch descriptor and path of each watch.
  std::vector<char> events_;  // Events that read() returned; next() continues at offset at_.
  std::size_t at_ = 0;
};

}  // namespace weft::files
