// Makes temporary files and directories, which destructors remove.
#pragma once

#include <string>
#include <utility>
#include <weft/files.hpp>
#include <weft/result.hpp>
#include <weft/until.hpp>

namespace weft::files {

struct TemporaryOptions {
  // The directory of the new path. If this is empty, the path is in $TMPDIR, or else in "/tmp".
  std::string folder = {};
  // The name is `prefix`, random letters and digits (in a simulation, a number), and `suffix`.
  std::string prefix = "weft-";
  std::string suffix = {};
};

// Owns the path of a new file or directory, and removes it. The two classes below use it.
// Context: plain value; the destructor and assignments park if there is a path.
class TemporaryPath {
 public:
  TemporaryPath() noexcept = default;
  // Owns `path`.
  explicit TemporaryPath(std::string path) noexcept : path_(std::move(path)) {}
  TemporaryPath(TemporaryPath&& other) noexcept : path_(other.release()) {}
  // Removes the current path and takes the path of `other`.
  TemporaryPath& operator=(TemporaryPath&& other) noexcept;
  // Removes the path with everything below it, regardless of the caller's context. Errors are
  // ignored. A thread of file_group() removes the path; if no thread can, the calling thread does.
  ~TemporaryPath() { discard(); }

  // Returns the path; empty if there is none.
  [[nodiscard]] const std::string& get() const noexcept { return path_; }
  // Gives the path to the caller, who then owns it; this object no longer removes it.
  [[nodiscard]] std::string release() noexcept { return std::exchange(path_, {}); }

 private:
  void discard() noexcept;

  std::string path_;
};

// Owns a new, empty file with a unique name, open for reads and writes; only the process's user may
// read it. The destructor removes the file; if the process is killed, the file remains.
//
//   auto [upload, error] = files::TemporaryFile::create({.folder = "/srv/uploads"});
//   if (!error && upload.file().write_all(text, 0)) (void)upload.keep_as("/srv/uploads/7");
//
// Context: fibers and plain threads, one caller at a time; create(), keep_as(), the destructor and
// assignments park.
// Errors: the same as for File::open(); invalid_argument for a slash in the prefix or suffix.
// Throws: std::bad_alloc.
class TemporaryFile {
 public:
  TemporaryFile() noexcept = default;

  // Creates a file. If `until` ends the wait, a thread may create the file later, then remove it.
  static Result<TemporaryFile> create(const TemporaryOptions& options = {},
                                      const Until& until = Until::ambient());

  // Returns the open file. A copy of the File stays usable after the file's name is removed.
  [[nodiscard]] File& file() noexcept { return file_; }
  // Returns the path; empty if there is no file.
  [[nodiscard]] const std::string& path() const noexcept { return path_.get(); }
  // Keeps the file under another name, as rename() does. Call sync() first, so that a power cut
  // does not leave the name without the data. After an error, the file stays temporary; but if
  // `until` ended the wait, the file may have the old or the new name.
  // Errors: also the errors of rename(); Errc::closed if there is no file.
  [[nodiscard]] Result<void> keep_as(std::string path, const Until& until = Until::ambient());
  // Keeps the file where it is, and returns its path.
  [[nodiscard]] std::string keep() noexcept { return path_.release(); }

 private:
  File file_;
  TemporaryPath path_;
};

// Owns a new, empty directory with a unique name; only the process's user may enter it. The
// destructor removes it and its contents; if the process is killed, the directory remains.
// Context: fibers and plain threads, one caller at a time; create(), the destructor and assignments
// park.
// Errors: the same as for create_directory(); invalid_argument for a slash in the prefix or suffix.
// Throws: std::bad_alloc.
class TemporaryDirectory {
 public:
  TemporaryDirectory() noexcept = default;

  // Creates a directory. A directory created only after `until` ended the wait is removed again.
  static Result<TemporaryDirectory> create(const TemporaryOptions& options = {},
                                           const Until& until = Until::ambient());

  // Returns the path; empty if there is no directory.
  [[nodiscard]] const std::string& path() const noexcept { return path_.get(); }
  // Keeps the directory, and returns its path.
  [[nodiscard]] std::string keep() noexcept { return path_.release(); }

 private:
  TemporaryPath path_;
};

}  // namespace weft::files
