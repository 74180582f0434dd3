#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <weft/error.hpp>
#include <weft/files.hpp>

#include "base/thread.hpp"
#include "files/regular.hpp"
#include "io/kernel.hpp"

namespace weft::files {

namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

Kind kind_of(const dirent& entry, const std::string& path) noexcept {
  unsigned char type = entry.d_type;
  struct stat found {};
  // Some file systems do not report the type.
  if (type == DT_UNKNOWN && ::lstat(path.c_str(), &found) == 0) type = IFTODT(found.st_mode);
  switch (type) {
    case DT_REG:
      return Kind::file;
    case DT_DIR:
      return Kind::directory;
    case DT_LNK:
      return Kind::symbolic_link;
    default:
      return Kind::other;
  }
}

void sort(std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& left, const Entry& right) { return left.path < right.path; });
}

std::string path_before(const std::string& directory) {
  return directory.ends_with('/') ? directory : directory + '/';
}

Result<std::vector<Entry>> list_simulated(io::FileKernel& files, const std::string& path) {
  std::vector<io::DirectoryEntry> found;
  if (const io::CallResult listed = files.list(path, found); listed.error != 0) {
    return {.error = listed.code()};
  }
  Result<std::vector<Entry>> result;
  for (const io::DirectoryEntry& entry : found) {
    result.value.push_back(
        {path_before(path) + entry.name, entry.is_directory ? Kind::directory : Kind::file});
  }
  sort(result.value);
  return result;
}

// Lists a directory, on a thread that may block.
Result<std::vector<Entry>> read_directory(const std::string& path) {
  if (io::FileKernel* files = io::simulated_files()) [[unlikely]]
    return list_simulated(*files, path);
  const auto failed = [] {
    return Result<std::vector<Entry>>{.error = {base::last_error(), std::system_category()}};
  };
  const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
  if (directory == nullptr) return failed();
  const std::string before = path_before(path);
  Result<std::vector<Entry>> result;
  for (;;) {
    errno = 0;  // errno stays 0 at the end of the directory.
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name(entry->d_name);
    if (name == "." || name == "..") continue;
    std::string whole = before + entry->d_name;
    const Kind kind = kind_of(*entry, whole);
    result.value.push_back({std::move(whole), kind});
  }
  if (base::last_error() != 0) return failed();
  sort(result.value);
  return result;
}

// Returns true if no thread has tried to read the directory: the limit ended the wait, the group is
// full, or the system has refused a thread.
bool may_be_tried_again(std::error_code error) noexcept {
  return error == Errc::timed_out || error == Errc::cancelled || error == Errc::full ||
         error == std::errc::resource_unavailable_try_again;
}

}  // namespace

Result<std::vector<Entry>> list_directory(std::string path, const Until& until) {
  if (const auto malformed = check_path(path)) return {.error = malformed};
  auto [entries, error] =
      file_group().run([name = std::move(path)] { return read_directory(name); }, until);
  if (error) return {.error = error};
  return std::move(entries);
}

Result<std::optional<Entry>> Walk::next(const Until& until) {
  if (next_) {
    auto [entries, error] = list_directory(*next_, until);
    if (may_be_tried_again(error)) return {.error = error};
    std::string path = std::move(*next_);
    next_.reset();
    if (error) return {.value = Entry{std::move(path), Kind::directory}, .error = error};
    // Sorted in reverse, because the walk takes entries from the end.
    std::move(entries.rbegin(), entries.rend(), std::back_inserter(ahead_));
  }
  if (ahead_.empty()) return {};
  Entry entry = std::move(ahead_.back());
  ahead_.pop_back();
  if (entry.kind == Kind::directory) next_ = entry.path;
  return {.value = std::move(entry)};
}

}  // namespace weft::files
