// Accesses files without blocking workers. The kernel cannot report that a file is ready, so helper
// threads make the calls that may wait for a disk.
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

// On most file systems, a read returns data in the page cache at once, without a thread. Otherwise
// the caller parks while a thread of file_group() makes the call. If `until` ends the wait, the
// thread still finishes a call that it has begun, for example a write.
// Context: fibers and plain threads, with or without a runtime; calls that take an Until park.
// Errors: system errors (no_such_file_or_directory, ...); invalid_argument for a path with a zero
// byte; Errc::timed_out, cancelled; Errc::full if too many calls wait for a thread.
// Throws: std::bad_alloc.
namespace weft::files {

// Returns the group of the file threads: at most 16 threads, which end after 100 ms without work.
// At most 4096 calls may wait for a thread.
[[nodiscard]] BlockingGroup& file_group();

enum class Access : std::uint8_t {
  read,
  write,       // Keeps existing bytes.
  read_write,  // Keeps existing bytes.
};

struct OpenOptions {
  Access access = Access::read;
  bool create = false;     // Creates the file if it does not exist.
  bool exclusive = false;  // With `create`, open() returns file_exists if the file exists.
  bool truncate = false;   // Removes existing bytes.
  bool append = false;     // Each write goes to the file's current end, not to its offset.
  unsigned mode = 0644;    // The mode of a created file, before the umask is applied.
};

// An open regular file. Copies share the file, which is closed once the last copy is destroyed and
// all calls have ended. Calls may be concurrent, because each call has its own offset.
// Errors: also Errc::closed if no file is open.
class File {
 public:
  File() noexcept = default;

  // Opens the file at `path`.
  // Errors: also is_a_directory; operation_not_supported if `path` is not a regular file.
  static Result<File> open(std::string path, const OpenOptions& options = {},
                           const Until& until = Until::ambient());

  // Reads at least one byte. If the page cache holds bytes, returns them at once, even if the
  // buffer is not full. Returns Errc::end_of_stream if `offset` is not before the end of the file,
  // and 0 for an empty buffer.
  Result<std::size_t> read_some(std::span<std::byte> buffer, std::uint64_t offset,
                                const Until& until = Until::ambient());
  // Fills the buffer. After an error, the first `value` bytes of the buffer are valid.
  Result<std::size_t> read_exactly(std::span<std::byte> buffer, std::uint64_t offset,
                                   const Until& until = Until::ambient());
  // Writes all bytes. After an error, at least `value` bytes have been written. On most file
  // systems, the call copies the data in pieces of at most 1 MiB, which a file thread writes.
  // Errors: also file_too_large.
  Result<std::size_t> write_all(std::span<const std::byte> data, std::uint64_t offset,
                                const Until& until = Until::ambient());
  // Works like the overload above, for the bytes of `text`.
  Result<std::size_t> write_all(std::string_view text, std::uint64_t offset,
                                const Until& until = Until::ambient()) {
    return write_all(std::as_bytes(std::span(text)), offset, until);
  }
  // Appends all bytes to the file. An append of up to 1 MiB stays contiguous, even if other
  // processes append, unless the file system writes only part of the data.
  // Errors: also std::errc::invalid_argument unless OpenOptions::append was set.
  Result<std::size_t> append(std::span<const std::byte> data,
                             const Until& until = Until::ambient());
  // Works like the overload above, for the bytes of `text`.
  Result<std::size_t> append(std::string_view text, const Until& until = Until::ambient()) {
    return append(std::as_bytes(std::span(text)), until);
  }
  // Waits until written data is on the disk (fdatasync).
  [[nodiscard]] Result<void> sync(const Until& until = Until::ambient());
  // Returns the size of the file in bytes.
  Result<std::uint64_t> size() const noexcept;

  // Returns the descriptor, or -1 if no file is open.
  [[nodiscard]] int native_handle() const noexcept { return file_ ? file_->get() : -1; }
  // Returns whether a file is open.
  [[nodiscard]] explicit operator bool() const noexcept { return file_ != nullptr; }

 private:
  friend class TemporaryFile;
  File(std::shared_ptr<const Descriptor> file, bool appends) noexcept
      : file_(std::move(file)), appends_(appends) {}

  std::shared_ptr<const Descriptor> file_;
  bool appends_ = false;
};

// Reads a whole file.
// Errors: also the errors of File::open(); not_enough_memory.
Result<std::string> read_file(std::string path, const Until& until = Until::ambient());
// Reads a whole file of at most `most` bytes.
// Errors: also file_too_large.
Result<std::string> read_file(std::string path, std::size_t most,
                              const Until& until = Until::ambient());
// Creates a file with `data`, or replaces its contents. A concurrent reader may see partial data.
// Errors: also the errors of File::open().
[[nodiscard]] Result<void> write_file(std::string path, std::string data,
                                      const Until& until = Until::ambient());
// Works like write_file(), but readers see either the whole old or the whole new file, even after a
// crash. The call writes a new file (.weft.*.new) in the same directory, then syncs and renames it.
// If `path` is a symbolic link to a regular file, the new file replaces the link. The new file gets
// the old owner and group if the caller may set them, and no permission that the old file lacked.
[[nodiscard]] Result<void> replace_file(std::string path, std::string data,
                                        const Until& until = Until::ambient());

enum class Kind : std::uint8_t { file, directory, symbolic_link, other };

// The attributes of a path, as stat(2) reports them.
struct Status {
  Kind kind = Kind::other;
  unsigned mode = 0;       // The permission bits, such as 0644.
  std::uint64_t size = 0;  // In bytes. The size depends on the file system unless `kind` is file.
  std::chrono::system_clock::time_point modified = {};
};

// Returns the attributes of a path. Follows symbolic links.
Result<Status> status(std::string path, const Until& until = Until::ambient());
// Returns the attributes of a path. For a symbolic link, describes the link itself.
Result<Status> link_status(std::string path, const Until& until = Until::ambient());

// Renames a file, a link or a directory, and replaces a file, a link or an empty directory that has
// the new name. Every process sees either the old or the new name. Errors: also cross_device_link;
// directory_not_empty; is_a_directory or not_a_directory if only one path is a directory;
// invalid_argument if a directory would move into itself.
[[nodiscard]] Result<void> rename(std::string from, std::string to,
                                  const Until& until = Until::ambient());
// Removes a file, a link or an empty directory.
// Errors: also directory_not_empty.
[[nodiscard]] Result<void> remove(std::string path, const Until& until = Until::ambient());
// Works like remove(), but first empties a directory. Ignores a missing path. Follows no link at or
// below the path, even if one replaces a directory meanwhile. The first error ends the call.
// Errors: also directory_not_empty if entries are added meanwhile; too_many_files_open if the tree
// has more levels than the process has free descriptors.
[[nodiscard]] Result<void> remove_all(std::string path, const Until& until = Until::ambient());
// Creates a directory with mode 0777, as restricted by the process's umask.
// Errors: also file_exists.
[[nodiscard]] Result<void> create_directory(std::string path,
                                            const Until& until = Until::ambient());

struct Entry {
  std::string path;  // Begins with the directory's path as the caller passed it.
  Kind kind = Kind::other;
};

// Returns the entries of a directory, sorted by name, without "." and "..".
Result<std::vector<Entry>> list_directory(std::string path, const Until& until = Until::ambient());

// Visits all entries below a directory, sorted by name; a directory comes before its contents.
// Symbolic links below it are listed but not followed. Only one caller at a time may use a Walk.
class Walk {
 public:
  // Begins a walk at `root`; the first next() reads this directory.
  explicit Walk(std::string root) : next_(std::move(root)) {}

  // Returns the next entry, or nothing at the end. If a directory cannot be read, returns its path
  // and the error; the next call then skips it. After timed_out, cancelled, full or
  // resource_unavailable_try_again, returns only the error; the next call retries the directory.
  Result<std::optional<Entry>> next(const Until& until = Until::ambient());
  // Skips the contents of the directory that next() returned last.
  void skip() noexcept { next_.reset(); }

 private:
  std::vector<Entry> ahead_;         // The entries to return, in reverse order.
  std::optional<std::string> next_;  // The directory to visit next.
};

}  // namespace weft::files
