// Files that keep no worker waiting: the kernel cannot say when a file is ready, so what would have
// to wait for a disk is done on threads made for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include <weft/blocking_group.hpp>
#include <weft/descriptor.hpp>
#include <weft/result.hpp>
#include <weft/until.hpp>

// All calls may be made from fibers and plain threads, with or without a runtime. Anything in the
// system's memory is got at once, without a thread. Else the caller parks while a thread of
// file_group() makes the call. Errors of all calls: the system's (no_such_file_or_directory, ...);
// invalid_argument for a path with a zero inside; Errc::timed_out, cancelled, when `until` ended
// the wait: what a thread has begun goes on, so a file may have been written all the same;
// Errc::full: too many wait for a thread. They throw std::bad_alloc, and synchronize with nothing.
namespace weft::files {

// The threads: at most 16, for the whole process, with 4096 calls that wait for one. A thread
// without work ends after 100 ms. Never parks.
[[nodiscard]] BlockingGroup& file_group();

enum class Access : std::uint8_t {
  read,
  write,       // Existing bytes stay.
  read_write,  // The same.
};

struct OpenOptions {
  Access access = Access::read;
  bool create = false;     // If it is not there.
  bool exclusive = false;  // With create: file_exists if it is there.
  bool truncate = false;   // Existing bytes go.
  unsigned mode = 0644;    // Of a file that is created, less the process' umask.
};

// An open regular file. Copies share it; the last one closes it, once no call uses it. Several
// callers may read and write at the same time: each call says where.
class File {
 public:
  File() noexcept = default;

  // Errors further: is_a_directory; operation_not_supported for what is no regular file.
  static Result<File> open(std::string path, const OpenOptions& options = {},
                           const Until& until = {});

  // Reads what there is, at least one byte; what is in memory comes at once, even if it is less.
  // At or beyond the end: Errc::end_of_stream. A buffer of no bytes gives 0 at once.
  Result<std::size_t> read_some(std::span<std::byte> buffer, std::uint64_t offset,
                                const Until& until = {});
  // Fills the buffer. After an error, `value` bytes at its start have been read.
  Result<std::size_t> read_exactly(std::span<std::byte> buffer, std::uint64_t offset,
                                   const Until& until = {});
  // Writes all. After an error, `value` bytes at least have been taken by the system. On most file
  // systems each MiB takes a thread, and a copy. Errors further: file_too_large.
  Result<std::size_t> write_all(std::span<const std::byte> data, std::uint64_t offset,
                                const Until& until = {});
  // Until what was written is on the disk; the data alone (fdatasync).
  [[nodiscard]] std::error_code sync(const Until& until = {});
  // Never parks. Errc::closed for no file.
  Result<std::uint64_t> size() const noexcept;

  // -1: there is no file.
  [[nodiscard]] int native_handle() const noexcept { return file_ ? file_->get() : -1; }
  // Returns whether there is an open file.
  [[nodiscard]] explicit operator bool() const noexcept { return file_ != nullptr; }

 private:
  explicit File(std::shared_ptr<const Descriptor> file) noexcept : file_(std::move(file)) {}

  std::shared_ptr<const Descriptor> file_;
};

// Reads a whole file. Further errors: as of File::open(); std::errc::file_too_large beyond `most`
// bytes; not_enough_memory.
Result<std::string> read_file(std::string path, const Until& until = {},
                              std::size_t most = ~std::size_t{0});
// Makes a file of these bytes, or replaces what is in it. A concurrent reader sees a part. Further
// errors: as of File::open().
[[nodiscard]] std::error_code write_file(std::string path, std::string data,
                                         const Until& until = {});
// The same, but every reader sees the whole old file or the whole new one, also after a crash. It
// writes a file in the same folder (.weft.*.new), brings that to the disk, and renames it. So, as
// by rename(2), a symbolic link is replaced itself; but a link to a device, a pipe, a socket or a
// directory is refused as that is, with the errors of File::open(), and stays. The new file has the
// rights of the old one from its first byte on, or fewer; its owner and group, too, where the
// caller may give them.
[[nodiscard]] std::error_code replace_file(std::string path, std::string data,
                                           const Until& until = {});

enum class Kind : std::uint8_t { file, directory, symbolic_link, other };

struct Entry {
  std::string path;  // Beginning with the directory's, as it was given.
  Kind kind = Kind::other;
};

// The entries of a directory, sorted by name, without "." and "..".
Result<std::vector<Entry>> list_directory(std::string path, const Until& until = {});

// All that is below a directory, directories before what is in them, sorted by name. Symbolic links
// are listed, and not followed. For one caller at a time.
class Walk {
 public:
  // Reads nothing yet; next() does.
  explicit Walk(std::string root) : next_(std::move(root)) {}

  // The next entry; nothing at the end. An error concerns the directory whose path comes with it,
  // and the walk goes on behind it; but after Errc::timed_out, cancelled and full the same
  // directory is tried again.
  Result<std::optional<Entry>> next(const Until& until = {});
  // The contents of the directory that was told last are left out.
  void skip() noexcept { next_.reset(); }

 private:
  std::vector<Entry> ahead_;         // The next one stands last.
  std::optional<std::string> next_;  // The directory to go into.
};

}  // namespace weft::files
