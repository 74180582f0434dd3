// Files that do not block workers. The kernel cannot report that a file is ready, so threads make
// calls that would wait for a disk.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/blocking_group.hpp>
#include <weft/descriptor.hpp>
#include <weft/result.hpp>
#include <weft/until.hpp>

// Data in the system's memory is returned at once, without a thread. Otherwise the caller parks
// while a thread of file_group() makes the call. If `until` ends the wait, a thread's call
// continues, so a file may still be written.
// Context: fibers and plain threads, with or without a runtime; calls that take an Until park.
// Errors: the system's (no_such_file_or_directory, ...); invalid_argument for a path with a zero
// byte; Errc::timed_out, cancelled; Errc::full if too many calls wait for a thread.
// Throws: std::bad_alloc.
namespace weft::files {

// Returns the process's threads: at most 16, which end after 100 ms of idleness; 4096 calls may
// wait.
[[nodiscard]] BlockingGroup& file_group();

enum class Access : std::uint8_t {
  read,
  write,       // Keeps existing bytes.
  read_write,  // Keeps existing bytes.
};

struct OpenOptions {
  Access access = Access::read;
  bool create = false;     // Creates the file if it does not exist.
  bool exclusive = false;  // With create: returns file_exists if the file exists.
  bool truncate = false;   // Drops existing bytes.
  bool append = false;     // Each write goes to the file's current end, not to its offset.
  unsigned mode = 0644;    // The mode of a created file, less the process's umask.
};

// A call that has begun continues in its thread after Errc::timed_out or cancelled.

// An open regular file. Copies share the file; the last copy closes it after the last call. Calls
// may be concurrent, since each has its own offset.
class File {
 public:
  File() noexcept = default;

  // Opens a file.
  // Errors: also is_a_directory; operation_not_supported unless it is a regular file.
  static Result<File> open(std::string path, const OpenOptions& options = {},
                           const Until& until = Until::ambient());

  // Reads at least one byte; bytes in memory come at once, even if they do not fill the buffer. At
  // or after the end it returns Errc::end_of_stream. An empty buffer gives 0 at once.
  Result<std::size_t> read_some(std::span<std::byte> buffer, std::uint64_t offset,
                                const Until& until = Until::ambient());
  // Fills the buffer. After an error, its first `value` bytes have been read.
  Result<std::size_t> read_exactly(std::span<std::byte> buffer, std::uint64_t offset,
                                   const Until& until = Until::ambient());
  // Writes all. After an error the system has taken at least `value` bytes. On most file systems, a
  // thread writes a copy of each MiB.
  // Errors: also file_too_large.
  Result<std::size_t> write_all(std::span<const std::byte> data, std::uint64_t offset,
                                const Until& until = Until::ambient());
  // Does the same for text.
  Result<std::size_t> write_all(std::string_view text, std::uint64_t offset,
                                const Until& until = Until::ambient()) {
    return write_all(std::as_bytes(std::span(text)), offset, until);
  }
  // Writes all bytes at the end of the file. No other append, even of another process, splits an
  // append of up to 1 MiB, unless the file system writes only a part.
  // Errors: also std::errc::invalid_argument unless OpenOptions::append was set.
  Result<std::size_t> append(std::span<const std::byte> data,
                             const Until& until = Until::ambient());
  // Does the same for text.
  Result<std::size_t> append(std::string_view text, const Until& until = Until::ambient()) {
    return append(std::as_bytes(std::span(text)), until);
  }
  // Waits until written data is on the disk (fdatasync).
  [[nodiscard]] Result<void> sync(const Until& until = Until::ambient());
  // Returns the size.
  // Errors: Errc::closed without a file.
  Result<std::uint64_t> size() const noexcept;

  // Returns the descriptor, or -1.
  [[nodiscard]] int native_handle() const noexcept { return file_ ? file_->get() : -1; }
  // Returns whether there is an open file.
  [[nodiscard]] explicit operator bool() const noexcept { return file_ != nullptr; }

 private:
  friend class TemporaryFile;
  File(std::shared_ptr<const Descriptor> file, bool appends) noexcept
      : file_(std::move(file)), appends_(appends) {}

  std::shared_ptr<const Descriptor> file_;
  bool appends_ = false;
};

// Reads a whole file.
// Errors: also File::open()'s; not_enough_memory.
Result<std::string> read_file(std::string path, const Until& until = Until::ambient());
// Does the same with a file of at most `most` bytes.
// Errors: also file_too_large.
Result<std::string> read_file(std::string path, std::size_t most,
                              const Until& until = Until::ambient());
// Makes a file of these bytes, or replaces its contents. A concurrent reader may see only a part.
// Errors: also as File::open().
[[nodiscard]] Result<void> write_file(std::string path, std::string data,
                                      const Until& until = Until::ambient());
// Does the same, but each reader sees the whole old or the whole new file, even after a crash. It
// writes a file in the same folder (.weft.*.new), syncs it and renames it. A symbolic link to a
// regular file is itself replaced. The new file has at most the rights of the old file, and its
// owner and group if the caller may set them.
[[nodiscard]] Result<void> replace_file(std::string path, std::string data,
                                        const Until& until = Until::ambient());

enum class Kind : std::uint8_t { file, directory, symbolic_link, other };

// The facts of a path, as stat(2) reports them.
struct Status {
  Kind kind = Kind::other;
  unsigned mode = 0;       // The permission bits, such as 0644.
  std::uint64_t size = 0;  // In bytes; for other kinds than files, the file system defines it.
  std::chrono::system_clock::time_point modified = {};
};

// Returns the facts of a path. Symbolic links are followed.
Result<Status> status(std::string path, const Until& until = Until::ambient());
// Does the same, but describes a symbolic link itself.
Result<Status> link_status(std::string path, const Until& until = Until::ambient());

// Renames a file, a link or a directory, and replaces a file, a link or an empty directory that has
// the new name. Every process sees the old name or the new one.
// Errors: also cross_device_link, directory_not_empty; is_a_directory, not_a_directory if only one
// of the two is a directory; invalid_argument for a directory that would be within itself.
[[nodiscard]] Result<void> rename(std::string from, std::string to,
                                  const Until& until = Until::ambient());
// Removes a file, a link or an empty directory.
// Errors: also directory_not_empty.
[[nodiscard]] Result<void> remove(std::string path, const Until& until = Until::ambient());
// Does the same, and first removes all that is below a directory. A missing path counts as removed.
// Links are not followed, even if they replace a directory. The first error ends it.
// Errors: also directory_not_empty if another process adds entries; too_many_files_open for a tree
// with more levels than there are free descriptors.
[[nodiscard]] Result<void> remove_all(std::string path, const Until& until = Until::ambient());
// Makes a directory, with mode 0777 less the process's umask.
// Errors: also file_exists.
[[nodiscard]] Result<void> create_directory(std::string path,
                                            const Until& until = Until::ambient());

struct Entry {
  std::string path;  // Begins with the directory's path, as it was given.
  Kind kind = Kind::other;
};

// Returns the entries of a directory, sorted by name, without "." and "..".
Result<std::vector<Entry>> list_directory(std::string path, const Until& until = Until::ambient());

// Visits all entries below a directory, directories before their contents, sorted by name. Symbolic
// links are listed but not followed. One caller at a time.
class Walk {
 public:
  // Begins at `root`; next() reads it.
  explicit Walk(std::string root) : next_(std::move(root)) {}

  // Returns the next entry, or nothing at the end. An error concerns the directory whose path comes
  // with it; the walk continues after it.
  Result<std::optional<Entry>> next(const Until& until = Until::ambient());
  // Omits the contents of the last returned directory.
  void skip() noexcept { next_.reset(); }

 private:
  std::vector<Entry> ahead_;         // The next entry is the last element.
  std::optional<std::string> next_;  // The directory to visit next.
};

}  // namespace weft::files
