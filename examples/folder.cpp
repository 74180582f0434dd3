#include "folder.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace examples {

namespace {

std::error_code last_error() { return {errno, std::system_category()}; }

Kind kind_of_mode(mode_t mode) {
  if (S_ISREG(mode)) return Kind::file;
  return S_ISDIR(mode) ? Kind::folder : Kind::other;
}

// Some file systems do not report the type.
Kind kind_of_entry(const dirent& entry, const std::string& path) {
  switch (entry.d_type) {
    case DT_REG:
      return Kind::file;
    case DT_DIR:
      return Kind::folder;
    case DT_UNKNOWN: {
      const auto [kind, error] = kind_of(path, Links::refuse);
      // If the kind of an entry is unknown, the entry counts as a file; opening it will report the
      // reason.
      return error ? Kind::file : kind;
    }
    default:
      return Kind::other;
  }
}

}  // namespace

std::pair<Kind, std::error_code> kind_of(const std::string& path, Links links) {
  struct stat status {};
  const int result =
      links == Links::follow ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status);
  if (result != 0) return {Kind::other, last_error()};
  return {kind_of_mode(status.st_mode), {}};
}

std::pair<std::vector<Entry>, std::error_code> entries_of(const std::string& folder) {
  struct Close {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  const std::unique_ptr<DIR, Close> stream(::opendir(folder.c_str()));
  if (!stream) return {{}, last_error()};
  const std::string prefix = folder.ends_with('/') ? folder : folder + '/';

  std::vector<Entry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) return {std::move(entries), last_error()};  // errno is 0 at the end.
    const std::string_view name(entry->d_name);
    if (name == "." || name == "..") continue;
    std::string path = prefix;
    path += name;
    const Kind kind = kind_of_entry(*entry, path);
    entries.push_back({std::move(path), kind});
  }
}

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace examples
